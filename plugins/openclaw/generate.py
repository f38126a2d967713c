"""Write what the plugin knows of the engine: its tools and its version.

`python plugins/openclaw/generate.py` writes the files; `--check` exits 1 when one is out of date.
"""

import json
import sys
from pathlib import Path
from typing import Any

from obsidian_rag import __version__
from obsidian_rag.tools import TOOLS, Tool
from obsidian_rag.tools.dispatch import schemas

PLUGIN = Path(__file__).parent
MANIFEST = "openclaw.plugin.json"
# The model sees these at once; it finds the others in OpenClaw's tool catalogue.
DIRECT = {"obsidian_rag_search", "obsidian_rag_status", "obsidian_rag_read"}
PROFILES = ["minimal", "coding", "messaging", "full"]


def files() -> dict[str, str]:
    """Every generated file, by its path in the plugin."""
    return {
        "src/tools.json": _written(
            {"version": __version__, "tools": [*map(_tool, TOOLS.values())]}
        ),
        MANIFEST: _written(_manifest()),
        "package.json": _versioned("package.json"),
        "package-lock.json": _versioned("package-lock.json"),
    }


def stale() -> list[str]:
    """The files that differ from what the engine says."""
    return [name for name, text in files().items() if _present(name) != text]


def main(arguments: list[str]) -> int:
    """Write the files, or compare them."""
    behind = stale()
    if "--check" in arguments:
        for name in behind:
            sys.stderr.write(f"plugins/openclaw/{name} is out of date; run `make fix`\n")
        return 1 if behind else 0
    made = files()
    for name in behind:
        (PLUGIN / name).write_text(made[name], encoding="utf-8", newline="\n")
    return 0


def _tool(tool: Tool[Any]) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "read_only": tool.is_read_only,
        "direct": tool.name in DIRECT,
        "parameters": schemas()[tool.name],
    }


def _manifest() -> dict[str, object]:
    manifest: dict[str, object] = json.loads(_present(MANIFEST) or "{}")
    manifest["version"] = __version__
    manifest["contracts"] = {"tools": list(TOOLS)}
    manifest["toolMetadata"] = {
        name: {
            "profiles": PROFILES,
            "replaySafe": tool.is_read_only,
            "sideEffecting": not tool.is_read_only,
        }
        for name, tool in TOOLS.items()
    }
    return manifest


def _versioned(name: str) -> str:
    """An npm file with our version, otherwise byte for byte as npm left it."""
    text = _present(name) or "{}"
    found = json.loads(text)
    count = 2 if "packages" in found else 1
    return text.replace(
        f'"version": "{found.get("version")}"', f'"version": "{__version__}"', count
    )


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _present(name: str) -> str | None:
    file = PLUGIN / name
    return file.read_text(encoding="utf-8") if file.is_file() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
