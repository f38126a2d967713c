"""Makes `data-of-102e0e6.tar.gz`: two vaults and a data folder as commit 102e0e6 left them behind.

It was run once, with the code and the libraries of that commit:

    git worktree add /tmp/old 102e0e6 && make -C /tmp/old .venv/dev
    cd tests/integration/older && /tmp/old/.venv/bin/python make_old_folder.py .

`data-of-bb99bbc.tar.gz` was made in the same way by commit bb99bbc, from before linked vaults and
tokens: it has `vault` alone, and what a daemon and LiveSync keep.
"""

import os
import runpy
import sys
import tarfile
import tempfile
from pathlib import Path

from obsidian_rag.livesync.trash import Trash  # type: ignore[import-untyped]  # of that commit

from obsidian_rag.engine.tokens import Tokens
from obsidian_rag.notes import Scope
from obsidian_rag.store import Database, LivesyncRecords, SyncedFile

NOTES = {
    "Boiler.md": "# Boiler\n\nThe pressure is 1.5 bar. #heating\n\nCall Martha in March 2024.\n",
    "Garden/Tomatoes.md": "---\nstatus: open\ntags: [garden]\n---\n# Tomatoes\n\n"
    'Water them every morning. See [[Boiler]].\n\n```python\nprint("hidden")\n```\n',
    "2024-03-05.md": "# Tuesday\n\nMartha repaired the boiler and the tomatoes were planted.\n",
}
OFFER = "# Offer\n\nThe new radiators of the workshop cost 900 euros.\n"
REMOTE = "0123456789abcdef"


def command(*words: str) -> None:
    """Run one command of that time."""
    sys.argv = ["obsidian-rag", *words]
    try:
        runpy.run_module("obsidian_rag", run_name="__main__")
    except SystemExit as end:
        assert end.code in (0, None), (words, end.code)


def make(folder: Path) -> None:
    """Write the vault and the data folder."""
    vault, home = folder / "vault", folder / "home"
    for name, text in NOTES.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_text(text, encoding="utf-8")
    (folder / "work").mkdir()
    (folder / "work" / "Offer.md").write_text(OFFER, encoding="utf-8")
    os.environ["OBSIDIAN_RAG_HOME"] = str(home)
    command("init", "--vault", str(vault))
    command("config", "set", "watcher.debounce_s", "3")
    command("index")
    command("link", "add", str(folder / "work"), "--name", "work", "--exclude", "Drafts")
    command("index")
    token = Tokens(home).create("gardener", Scope(folders=("Garden",)), is_read_only=True)
    (folder / "token").write_text(token, encoding="ascii")
    command("memory", "store", "plumber", "Martha, on weekdays", "--source", "Boiler.md")
    database = Database(home / "state.db")
    records = LivesyncRecords(database, REMOTE)
    records.put_fact("since", "42-abc")
    records.put(
        SyncedFile("boiler.md", "Boiler.md", "2-b", "c0ffee", 71, 1_700_000_000_000_000_000)
    )
    records.quarantine("odd.md", "1-o", "Odd.md", "LIVESYNC_UNREADABLE", "no chunks")
    records.add_conflict("two.md", "Two.md", ("3-x", "3-y"), "Two (conflict).md")
    Trash(home / "livesync-trash", vault, records).keep("Gone.md", b"Gone.\n", 1, "deleted")
    records.drop_trash(records.add_trash("Late.md", "0002-Late.md", 5, "2024-03-06", "deleted"))
    database.close()


if __name__ == "__main__":
    target = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as name:
        make(Path(name))
        with tarfile.open(target / "data-of-102e0e6.tar.gz", "w:gz") as archive:
            for entry in ("vault", "work", "home", "token"):
                archive.add(Path(name) / entry, entry)
