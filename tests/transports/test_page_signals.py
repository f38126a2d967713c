"""The page and the Obsidian plugin have a word for every signal of a score, and for no other."""

import re
from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault

from obsidian_rag import transports
from obsidian_rag.relations.signals import Signal
from obsidian_rag.search import PARTS

PAGE = Path(transports.__file__).parent / "http" / "page"
PLUGIN = Path(__file__).parents[2] / "plugins" / "obsidian" / "src"
_TABLE = re.compile(r"\bSIGNALS\b[^=]*= [^{]*(?:/\*\*.*?\*/ *\(?)?\{\n(.*?)\n\}", re.DOTALL)
NOTES = {
    "Rain barrel.md": "---\nkind: tank\n---\n# Rain barrel\n\n## Setting up\n\nIn March 2024 the"
    " rain barrel got a tap.\n\n```\nopen_tap(rain)\n```\n",
    "Soil.md": "# Soil\n\nClay drains badly, and needs compost.\n",
}


def named_in(file: Path) -> set[str]:
    table = _TABLE.search(file.read_text(encoding="utf-8"))
    assert table is not None
    return set(re.findall(r"^ *(\w+):", table[1], re.MULTILINE))


def test_the_list_of_hits_names_the_signals_of_a_search() -> None:
    assert named_in(PAGE / "hits.js") == set(PARTS)


@pytest.mark.parametrize("file", [PAGE / "related.js", PLUGIN / "related_row.ts"], ids=str)
def test_lists_of_related_notes_name_their_signals(file: Path) -> None:
    assert named_in(file) == {signal.value for signal in Signal}


def test_a_search_sends_no_other_signal(
    cli: Cli, configure: Configure, make_vault: MakeVault
) -> None:
    configure(make_vault(NOTES), {"embedding.provider": "hash"})
    assert cli("index").code == 0
    sent: set[str] = set()
    for question in ("rain barrel open_tap in march 2024", "setting up", "brrel kind tank"):
        results = cli("search", question, "--json").json["data"]["results"]
        sent |= {name for hit in results for name in hit["why"]["signals"]}
    assert sent == set(PARTS) - {"meaning"}
