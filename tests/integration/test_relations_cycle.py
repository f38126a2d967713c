"""The seed's table of events, live: related notes follow edits before search has collected them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.living import Cli, Configure, Living, MakeVault, watching

NOTES = {
    "Rye.md": "# Rye\nSourdough starter, flour and patience.\n",
    "Bread.md": "# Bread\nFlour, water, salt and a sourdough starter.\n",
    "Roses.md": "# Roses\nPrune in March, feed in May.\n",
}
# Search collects for a minute: whatever is seen sooner did not come from an index run.
SLOW = {"watcher.debounce_s": 0, "watcher.collect_s": 60, "relations.debounce_ms": 50}


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    root = make_vault(NOTES)
    configure(root, SLOW)
    return root


@pytest.fixture
def daemon(vault: Path, cli: Cli) -> Iterator[Living]:
    assert cli("index").code == 0
    with watching() as one:
        yield one


def related(daemon: Living, note: str) -> list[str]:
    data = daemon.call("related", note=note)["data"]
    return [found["source_file"] for found in data["results"]]


def test_a_created_modified_renamed_and_deleted_note(daemon: Living, vault: Path) -> None:
    assert related(daemon, "Rye.md")[0] == "Bread.md"
    (vault / "Levain.md").write_text("# Levain\nA sourdough starter by another name.\n")
    assert daemon.wait_for("relations")["paths"] == ["Levain.md"]
    assert "Levain.md" in related(daemon, "Rye.md")
    (vault / "Levain.md").write_text("# Levain\nA village by the sea.\n")
    daemon.wait_for("relations")
    assert "Levain.md" not in related(daemon, "Rye.md")
    (vault / "Bread.md").rename(vault / "Loaf.md")
    daemon.wait_for("relations")
    assert related(daemon, "Rye.md")[0] == "Loaf.md"
    (vault / "Loaf.md").unlink()
    assert daemon.wait_for("relations")["removed"] == 1
    assert "Loaf.md" not in related(daemon, "Rye.md")
