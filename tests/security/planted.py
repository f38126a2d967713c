"""Vaults with planted secrets, and a twin of each without them.

A secret is a word that stands nowhere else. `PRIVATE` and `NEVER` ones belong to notes that an
agent may not know of: instead of these notes the twin has another one that is private. `WITHHELD`
ones stand in sections that are withheld, in notes that an agent may know of: the twin has them too.

`OUTSIDE` ones are of another pair of twins: they belong to notes that nobody hides, outside of the
folders that an agent is limited to.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag import config
from obsidian_rag.engine import Engine, add_link, run_index, sync_link
from obsidian_rag.index import Mode
from obsidian_rag.tools import OWNER, call

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
# Deleted, or moved to another place, after they were indexed.
GONE = ("Attic/Beans.md",)
_OTHER = {"Loft/Other.md": "---\nrag: private\n---\n# Other\n\nsomething else\n"}
_FACTS = (("memkeyowitho", "I owe memvalueowitho", "Notes/Ledger.md"),)
_HIDDEN_FACTS = (
    ("memkeyoprivo", "peas valueoprivo", PRIVATE_PATH),
    ("memkeyonevero", "peas valueonevero", NEVER_PATH),
)


INSIDE_FOLDERS = ("Notes", "Boards")
OUTSIDE_PATH = "Shed/Zamboni.md"
OUTSIDE = (*_words("ooutso"), *_words("oouter"), "zamboni", "tungsten", "5511223", "6611223")
OUTSIDE += ("2033-03-03", "2034-04-04", "memkeyooutso", "memkeyogone", "shed/", "barn/")
# Another vault is outside too, with a folder of the same name as one inside.
OUTSIDE += ("zanzibar", "textolinko")
_LINKED_NOTES = {
    "Notes/Peas.md": "# Peas\n\npeas textolinko by the wall\n",
    "Notes/Only.md": "# Only\n\nbeans textolinko\n",
}
# Where the calls of an attacker name what is hidden, these name what is outside.
CALLED_OUTSIDE = {
    PRIVATE_PATH: OUTSIDE_PATH,
    NEVER_PATH: "Barn/Tungsten.md",
    "Qorvexa": "Zamboni",
    "Wolframit": "Tungsten",
    "qorvexa": "zamboni",
    "Cellar": "Shed",
    "cellar": "shed",
    "Attic": "Barn",
    "attic": "barn",
    "oprivo": "ooutso",
    "onevero": "oouter",
    "opriva": "ooutsa",
    "opriv": "oouts",
    "4711987": "5511223",
    "8822993": "6611223",
    "2031-07-09": "2033-03-03",
    "2031": "2033",
    "2032-08": "2034-04",
}
_OUTSIDE_NOTES = {
    OUTSIDE_PATH: _MARKED.format(rag="true", x="ooutso", pin=5511223, day="2033-03-03"),
    "Shed/Peas.md": "# Peas\n\npeas textooutso\n",
    "Barn/Tungsten.md": _MARKED.format(rag="true", x="oouter", pin=6611223, day="2034-04-04"),
    "Barn/Beans.md": "# Beans\n\nbeans textoouter\n",
    "Barn/Broken.md": "---\nx: *brokenooutso\n---\n# Broken\n",
}
_FACT_INSIDE = ("spade", "the spade is by the peas", "Notes/Props.md")
_FACTS_OUTSIDE = (
    ("memkeyooutso", "peas valueooutso", OUTSIDE_PATH),
    # Its note is gone, and one inside has the same name.
    ("memkeyogone", "peas valueooutso", "Shed/Ledger.md"),
)


@dataclass(frozen=True, slots=True)
class Twins:
    """An installation with secrets, one without them, and where the first one lies."""

    full: Engine
    bare: Engine
    root: Path


@contextmanager
def twins_of(root: Path, plant: Callable[[Path, bool], Engine]) -> Iterator[Twins]:
    """Two installations; `plant` is told whether this one has the secrets."""
    full, bare = plant(root / "full", True), plant(root / "bare", False)
    with closing(full), closing(bare):
        yield Twins(full, bare, root / "full")


def plant_outside(root: Path, *, with_secrets: bool) -> Engine:
    """An indexed vault in which all secrets lie outside of some folders, or a twin without them."""
    notes = {**OPEN, **(_OUTSIDE_NOTES if with_secrets else {"Loft/Other.md": "# Other\n\nelse\n"})}
    gone = {"Shed/Ledger.md": "# Ledger\n\npeas\n"} if with_secrets else {}
    engine = _planted(root, {**notes, **gone}, {})
    if with_secrets:
        _write(root / "Zanzibar", _LINKED_NOTES)
        sync_link(engine, add_link(engine, str(root / "Zanzibar")).link_id)
    _remember(engine, (_FACT_INSIDE, *(_FACTS_OUTSIDE if with_secrets else ())))
    for path in gone:
        (root / "vault" / path).unlink()
        run_index(engine, Mode.SYNC)
    return engine


def plant(root: Path, *, with_hidden: bool, settings: Mapping[str, object] = WITHHOLD) -> Engine:
    """An indexed vault below `root`, whose data folder is `root/home`."""
    engine = _planted(root, {**OPEN, **(HIDDEN if with_hidden else _OTHER)}, settings)
    _remember(engine, (*_FACTS, *(_HIDDEN_FACTS if with_hidden else ())))
    return engine


def plant_changed(root: Path, *, with_hidden: bool) -> Engine:
    """The same, but the notes were made hidden only after they were indexed, and two are gone."""
    if not with_hidden:
        return plant(root, with_hidden=False)
    public = {path: text.replace("rag: ", "was: ") for path, text in HIDDEN.items()}
    engine = _planted(root, {**OPEN, **public}, WITHHOLD)
    _remember(engine, (*_FACTS, *_HIDDEN_FACTS))
    _write(root / "vault", HIDDEN)
    for path in GONE:
        (root / "vault" / path).unlink()
    return engine


def _planted(root: Path, notes: Mapping[str, str], settings: Mapping[str, object]) -> Engine:
    _write(root / "vault", notes)
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
    return engine


def _write(root: Path, notes: Mapping[str, str]) -> None:
    for path, text in notes.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _remember(engine: Engine, facts: Sequence[tuple[str, str, str]]) -> None:
    for key, value, source in facts:
        fact = {"key": key, "value": value, "source": source}
        stored = call(engine, "obsidian_rag_memory_store", fact, OWNER)
        assert stored["data"], stored


def told(answer: str, request: object, secrets: Sequence[str] = SECRETS) -> list[str]:
    """The secrets that an answer tells and its request did not know."""
    known, said = json.dumps(request, ensure_ascii=False).lower(), answer.lower()
    return [secret for secret in secrets if secret in said and secret not in known]
