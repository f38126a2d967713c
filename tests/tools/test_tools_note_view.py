"""A note as the page shows it, also while its vault is not indexed yet."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode, Phase, Progress
from obsidian_rag.tools import OWNER
from obsidian_rag.transports.http.web.note import read_note

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
NOTES = {
    "Start.md": "# Start\n\n[[Pond]], [[Deep/Well]], [[Start]], ![[Pond]] and [[Nowhere]]\n",
    "Water/Pond.md": "# Pond\n\nFrogs.\n",
    "Water/Deep/Well.md": "# Well\n\nStones.\n",
    "Private/Key.md": "# Key\n",
}


def shown(engine: Engine) -> str:
    data: Any = read_note(engine, {"path": "Start.md"}, OWNER)["data"]
    return str(data["html"])


def is_alive(html: str) -> bool:
    links = ("/Water/Pond.md", "/Water/Deep/Well.md", "/Start.md", "Frogs.", ">Nowhere</span>")
    return all(one in html for one in links) and html.count("missing") == 1


def test_links_lead_on_before_anything_is_indexed(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES), {"indexing.deny_dirs": ["Private"]})
    assert is_alive(shown(made))


@pytest.mark.parametrize("phase", [Phase.PARSING, Phase.STORING])
def test_links_lead_on_while_the_first_index_is_being_made(
    engine: MakeEngine, make_vault: MakeVault, phase: Phase
) -> None:
    made, seen = engine(make_vault(NOTES)), list[str]()

    def look(progress: Progress) -> None:
        if progress.phase is phase and not seen:
            seen.append(shown(made))

    run_index(made, Mode.SYNC, look)
    assert [is_alive(html) for html in (*seen, shown(made))] == [True, True]


def test_the_answer_changes_when_a_note_that_was_missing_comes(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault(NOTES)
    made = engine(vault)
    run_index(made, Mode.SYNC)
    assert is_alive(shown(made))
    (vault / "Nowhere.md").write_text("# Nowhere\n")
    run_index(made, Mode.SYNC)
    assert "missing" not in shown(made)
