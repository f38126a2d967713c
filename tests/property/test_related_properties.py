"""After any history of a vault, related notes are those of a new index, with scores and reasons."""

import random
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.search.indexed import indexed

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.engine.linking import add_link, remove_link, sync_link
from obsidian_rag.index import Mode, relate_now
from obsidian_rag.relations import similar_titles
from obsidian_rag.relations.query import relation_troubles
from obsidian_rag.tools import OWNER, call

RELATED = "obsidian_rag_related"
TEXTS = ("sedge and boilers by the pond", "sleeping foxes")
FOLDERS = ("", "Garden/", "House/", "House/Attic/")
NAMES = tuple(f"{name} {number}" for name in ("Pond", "Boiler", "Sleep") for number in range(11))
MADE_UP = ("took_ms", "id", "link_id")
NOTES = 24
# In so many notes that an edit or two make the difference between a template's line and a word.
TEMPLATE = ("## Log of the day", "- [ ] weekly review", "Mood: fine, walking", "## Open questions")
SENTENCES = (
    "Fox sedge and marsh marigold.",
    "The boilers were repaired, repairing took a day.",
    "Sleeping badly, slept at noon; sleeps late.",
    "A walk to the pond, walking home.",
    "Frogs. Frogs and newts, a newt!",
    "Die Kraniche ziehen nach Süden und der Teich ist zugefroren.",
    "抹茶と京都の旅行",
)
FEW = settings(
    deadline=None,
    # A shorter history is another one: there is nothing to make smaller.
    phases=(Phase.explicit, Phase.generate),
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def text_of(chance: random.Random) -> str:
    """A note: frontmatter, links to notes that may be there, sentences, lines of a template."""
    head = []
    if chance.random() < 0.4:
        head.append(f"tags: [{', '.join(chance.sample(['water', 'house', 'health'], 2))}]")
    if chance.random() < 0.4:
        head.append(f"id: note-{chance.randrange(12)}")
    if chance.random() < 0.3:
        related = chance.choice([f"note-{chance.randrange(12)}", f"'[[{chance.choice(NAMES)}]]'"])
        head.append(f"related: [{related}]")
    if chance.random() < 0.2:
        head.append(f"aliases: [{chance.choice(['The marsh', 'Frogs and newts'])}]")
    if chance.random() < 0.05:
        head.append("rag: false")
    lines = [f"---\n{chr(10).join(head)}\n---"] if head else []
    if chance.random() < 0.4:
        lines.append(f"# {chance.choice(NAMES)} and {chance.choice(NAMES)}")
    lines += [line for line in TEMPLATE if chance.random() < 0.62]
    lines += chance.sample(SENTENCES, chance.randrange(4))
    if chance.random() < 0.6:
        lines.append(f"See [[{chance.choice(FOLDERS)}{chance.choice(NAMES)}]].")
    return "\n\n".join(lines) + "\n"


class Lived:
    """A vault that is changed by chance; every change tells the paths it concerns."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self.chance = chance
        self.changes = (
            self.add,
            self.edit,
            self.edit,
            self.append,
            self.delete,
            self.rename,
            self.move,
            self.move_folder,
            self.swap,
            self.break_up,
        )
        for _ in range(NOTES):
            self.add()

    def notes(self) -> list[str]:
        return sorted(str(file.relative_to(self.root)) for file in self.root.rglob("*.md"))

    def free(self) -> str:
        while True:
            path = f"{self.chance.choice(FOLDERS)}{self.chance.choice(NAMES)}.md"
            if not (self.root / path).exists():
                return path

    def write(self, path: str, text: str) -> set[str]:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")
        return {path}

    def add(self) -> set[str]:
        return self.write(self.free(), text_of(self.chance))

    def edit(self) -> set[str]:
        return self.write(self.chance.choice(self.notes()), text_of(self.chance))

    def append(self) -> set[str]:
        path = self.chance.choice(self.notes())
        with (self.root / path).open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"\n{self.chance.choice((*SENTENCES, *TEMPLATE))}\n")
        return {path}

    def delete(self) -> set[str]:
        gone = set(self.chance.sample(self.notes(), 2))
        for path in gone:
            (self.root / path).unlink()
        return gone

    def rename(self) -> set[str]:
        return self._moved(self.chance.choice(self.notes()), self.free())

    def move(self) -> set[str]:
        old = self.chance.choice(self.notes())
        new = self.chance.choice(FOLDERS) + Path(old).name
        return self._moved(old, new) if not (self.root / new).exists() else self.edit()

    def move_folder(self) -> set[str]:
        old, new = self.chance.sample(["Garden", "House", "Elsewhere"], 2)
        if not (self.root / old).is_dir() or (self.root / new).exists():
            return self.edit()
        (self.root / old).rename(self.root / new)
        return {old, new}

    def swap(self) -> set[str]:
        one, other = self.chance.sample(self.notes(), 2)
        aside = self.root / "aside"
        (self.root / one).rename(aside)
        (self.root / other).rename(self.root / one)
        aside.rename(self.root / other)
        return {one, other}

    def break_up(self) -> set[str]:
        """What was a note is none any more: no text, or somebody else's business."""
        path = self.chance.choice(self.notes())
        (self.root / path).write_bytes(self.chance.choice([b"\0\1\2\0", b"---\nrag: false\n---\n"]))
        return {path}

    def _moved(self, old: str, new: str) -> set[str]:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)
        return {old, new}


def told(engine: Engine, notes: list[str]) -> dict[str, Any]:
    """All that is said of related notes, but for what every index makes up anew."""
    found: dict[str, Any] = {}
    for key, values in (("note", notes), ("text", TEXTS)):
        for value in values:
            shown = {key: value, "hide_linked": False, "max_results": 50}
            answer = call(engine, RELATED, shown, OWNER)
            error = answer["error"]
            found[value] = error["code"] if error is not None else _plain(answer["data"])
    found["titles"] = [similar_titles(engine.relations, name, 5) for name in ("Pnd 1", "Boiler")]
    found["troubles"] = relation_troubles(engine.relations, engine.vaults.primary.link_id)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in MADE_UP}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def vaults_in(answer: Any) -> set[str]:
    return {one["vault"] for one in answer["results"]}


def assert_as_new(engine: Engine, lived: Lived, folder: Path) -> None:
    notes = lived.notes()
    with closing(indexed(folder, lived.root)) as clean:
        expected = told(clean, notes)
    shutil.rmtree(folder)
    followed = told(engine, notes)
    assert followed == expected
    engine.relations.kept.close()
    assert told(engine, notes) == expected


def live_and_compare(seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        root.mkdir()
        lived = Lived(root, chance)
        with closing(indexed(Path(folder) / "home", root)) as engine:
            told(engine, lived.notes()[:1])
            for _ in range(chance.randrange(2, 8)):
                changed: set[str] = set()
                for _ in range(chance.randrange(1, 4)):
                    changed |= chance.choice(lived.changes)()
                take_up(engine, chance, sorted(changed))
            run_index(engine, Mode.SYNC)
            assert_as_new(engine, lived, Path(folder) / "clean")
            if chance.random() < 0.5:
                run_index(engine, chance.choice((Mode.FULL, Mode.REINDEX)))
                assert_as_new(engine, lived, Path(folder) / "clean")


def take_up(engine: Engine, chance: random.Random, changed: list[str]) -> None:
    """As the daemon does at once or later, as a command does, or not yet."""
    match chance.choice(("early", "paths", "both", "all", "full")):
        case "early":
            relate_now(engine.parts, engine.vaults.primary, changed)
        case "paths":
            run_index(engine, Mode.SYNC, paths=changed)
        case "both":
            relate_now(engine.parts, engine.vaults.primary, changed)
            run_index(engine, Mode.SYNC, paths=changed)
        case "all":
            run_index(engine, Mode.SYNC)
        case _:
            run_index(engine, Mode.FULL)


@settings(FEW, max_examples=4)
@given(st.integers(0, 2**32))
def test_related_notes_do_not_depend_on_history(seed: int) -> None:
    live_and_compare(seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(FEW, max_examples=30)
@given(st.integers(0, 2**32))
def test_related_notes_do_not_depend_on_long_histories(seed: int) -> None:
    live_and_compare(seed)


def test_deleted_notes_leave_no_trace(tmp_path: Path) -> None:
    """Neither in frequencies and averages, nor in what comes from templates."""
    root = tmp_path / "vault"
    root.mkdir()
    lived = Lived(root, random.Random(3))
    for number in range(40):
        line = "Weekly review of frogs" if number < 16 else f"Sedge {number % 5}, marigold"
        lived.write(f"{number}.md", f"{line}\n\nfrogs and newts, review {number % 7}\n")
    with closing(indexed(tmp_path / "home", root)) as engine:
        for number in range(0, 20, 2):
            (root / f"{number}.md").unlink()
        run_index(engine, Mode.SYNC)
        assert_as_new(engine, lived, tmp_path / "clean")


def test_a_linked_vault_counts_as_it_is_and_leaves_no_trace(tmp_path: Path) -> None:
    chance = random.Random(5)
    # No path is in both: of equals at one path, the link ids decide, which are made up.
    root, other = tmp_path / "vault", tmp_path / "linked"
    (other / "Far").mkdir(parents=True)
    root.mkdir()
    lived, linked = Lived(root, chance), Lived(other / "Far", chance)
    with closing(indexed(tmp_path / "home", root)) as engine:
        link = add_link(engine, str(other))
        sync_link(engine, link.link_id)
        for _ in range(6):
            chance.choice(lived.changes)()
            chance.choice(linked.changes)()
            run_index(engine, Mode.SYNC)
        notes = lived.notes()
        with closing(indexed(tmp_path / "clean", root)) as clean:
            sync_link(clean, add_link(clean, str(other)).link_id)
            expected = told(clean, notes)
        shutil.rmtree(tmp_path / "clean")
        assert "linked" in vaults_in(expected[notes[0]])
        assert told(engine, notes) == expected
        remove_link(engine, link.link_id)
        run_index(engine, Mode.SYNC)
        assert_as_new(engine, lived, tmp_path / "clean")
