"""Vaults with planted secrets, and a twin of each without them.

A secret is a word that stands nowhere else. `PRIVATE` and `NEVER` ones belong to notes that an
agent may not know of: instead of these notes the twin has another one that is private. `WITHHELD`
ones stand in sections that are withheld, in notes that an agent may know of: the twin has them too.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from obsidian_rag import config
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import call

PRIVATE_PATH = "Cellar/Qorvexa.md"
NEVER_PATH = "Attic/Wolframit.md"
WITHHOLD = {"security.sensitive_policy": "withhold"}

_MARKED = """---
rag: {rag}
title: Title{x}
aliases: [alias{x}]
tags: [tag{x}]
key{x}: value{x}
pin: {pin}
date: {day}
related: ["[[Peas]]"]
---
# Heading{x}

Peas and beans text{x} see [[link{x}]] and [[Beans|shown{x}]] #inline{x}

- [ ] task{x}

## Section{x}

```
code{x}
```

#only{x}

last{x}
"""
_PIECES = "Title alias tag key value Heading text link shown inline task Section code only last"


def _words(x: str) -> tuple[str, ...]:
    return tuple(f"{piece}{x}".lower() for piece in _PIECES.split())


PRIVATE = (*_words("oprivo"), "qorvexa", "4711987", "2031-07-09", "brokenoprivo", "memkeyoprivo")
NEVER = (*_words("onevero"), "wolframit", "8822993", "2032-08-10", "memkeyonevero")
FOLDERS = ("Cellar", "Attic")
WITHHELD = (
    "headowitho",
    "textowitho",
    "lineowitho",
    "codeowitho",
    "tagowitho",
    "linkowitho",
    "titleowitho",
    "propowitho",
    "propkeyowitho",
    "proptagowitho",
    "yamlowitho",
    "canvasowitho",
    "memkeyowitho",
    "memvalueowitho",
)
SECRETS = (*PRIVATE, *NEVER, *WITHHELD, *(folder.lower() for folder in FOLDERS))

_CANVAS = {
    "nodes": [
        {"id": "1", "type": "text", "text": "I owe canvasowitho", "x": 0, "y": 0, "width": 1},
        {"id": "2", "type": "text", "text": "peas", "x": 0, "y": 9, "width": 1},
    ],
    "edges": [],
}
OPEN: dict[str, str] = {
    "Notes/Garden.md": "# Garden\n\nbeans and peas grow by the wall, water them at dusk\n\n"
    "## Money headowitho\n\nI owe Bo, textowitho #tagowitho see [[linkowitho]]\nlineowitho\n\n"
    "```\ncodeowitho\n```\n\n## Beans\n\nsow beans early, peas later, and water both\n",
    "Notes/Ledger.md": "# Titleowitho\n\nI owe money for the fence.\n\n## Peas\n\n"
    + "peas grow tall by the fence " * 10,
    "Notes/Props.md": "---\ndebt: propowitho\npropkeyowitho: 77\ntags: [proptagowitho]\n---\n"
    "# Props\n\npeas, beans and a spade in the shed\n",
    "Notes/Odd.md": "---\ndebt: owe\nx: *yamlowitho\n---\n# Odd\n\nbeans\n",
    "Notes/Peas.md": "---\ntags: [green]\nid: 550e8400-e29b-41d4-a716-446655440000\nrating: 5\n"
    "---\n# Peas\n\nsow peas in march by the wall, see [[Beans]]\n",
    "Notes/Beans.md": "---\ntags: [green]\n---\n# Beans\n\nsow beans in may by the wall\n",
    "Boards/Map.canvas": json.dumps(_CANVAS),
}
HIDDEN: dict[str, str] = {
    PRIVATE_PATH: _MARKED.format(rag="private", x="oprivo", pin=4711987, day="2031-07-09"),
    "Cellar/Peas.md": "---\nrag: private\nx: *brokenoprivo\n---\n# Peas\n\npeas textoprivo\n",
    NEVER_PATH: _MARKED.format(rag="false", x="onevero", pin=8822993, day="2032-08-10"),
    "Attic/Beans.md": "---\nrag: false\n---\n# Beans\n\nbeans textonevero\n",
}
_OTHER = {"Loft/Other.md": "---\nrag: private\n---\n# Other\n\nsomething else\n"}
_FACTS = (("memkeyowitho", "I owe memvalueowitho", "Notes/Ledger.md"),)
_HIDDEN_FACTS = (
    ("memkeyoprivo", "peas valueoprivo", PRIVATE_PATH),
    ("memkeyonevero", "peas valueonevero", NEVER_PATH),
)


def plant(root: Path, *, with_hidden: bool, settings: Mapping[str, object] = WITHHOLD) -> Engine:
    """An indexed vault below `root`, whose data folder is `root/home`."""
    for path, text in {**OPEN, **(HIDDEN if with_hidden else _OTHER)}.items():
        file = root / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    tree: dict[str, object] = {
        "vault_path": str(root / "vault"),
        "embedding": {"provider": "hash"},
    }
    for key, value in settings.items():
        section, _, name = key.partition(".")
        tree[section] = {name: value}
    config.save(tree, root / "home" / "config.json")
    engine = Engine(config.load({}, {"OBSIDIAN_RAG_HOME": str(root / "home")}))
    run_index(engine, Mode.FULL)
    for key, value, source in (*_FACTS, *(_HIDDEN_FACTS if with_hidden else ())):
        fact = {"key": key, "value": value, "source": source}
        stored = call(engine, "obsidian_rag_memory_store", fact, is_owner=True)
        assert stored["data"], stored
    return engine


def told(answer: str, request: object) -> list[str]:
    """The secrets that an answer tells and its request did not know."""
    known, said = json.dumps(request, ensure_ascii=False).lower(), answer.lower()
    return [secret for secret in SECRETS if secret in said and secret not in known]
