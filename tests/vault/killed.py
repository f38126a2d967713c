"""A writer that is killed after writing and before replacing, as a power cut might do it."""

import signal
import subprocess
import sys
from pathlib import Path

NOTE = "Grüße/ein langer Name, der noch länger ist als vierzig Zeichen.md"
WRITER = """
import os, signal, sys
from pathlib import Path
from obsidian_rag.vault import content_hash, replace_note
os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
root, note = Path(sys.argv[1]), sys.argv[2]
replace_note(root, note, content_hash((root / note).read_bytes()), b"new content")
"""


def killed_writer(root: Path, note: str = NOTE) -> Path:
    """Kill a writer between writing and replacing; what it leaves."""
    (root / note).parent.mkdir(parents=True, exist_ok=True)
    (root / note).write_text("old content")
    done = subprocess.run([sys.executable, "-c", WRITER, str(root), note], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = [one for one in (root / note).parent.iterdir() if ".tmp-" in one.name]
    return left
