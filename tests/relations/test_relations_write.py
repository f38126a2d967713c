import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixture_types import MakeVault
from tests.waiting import PATIENCE_S

from obsidian_rag.errors import InvalidArgument, NoteChanged, NotFound, ReadOnly, SecurityViolation
from obsidian_rag.notes import Relation, parse_note, read_id, read_related
from obsidian_rag.relations import note_edit
from obsidian_rag.relations.note_edit import WrittenRelation, add_relation
from obsidian_rag.vault import Rules, Vault

A = "550e8400-e29b-41d4-a716-446655440000"
B = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
SOURCE = "---\ntitle: S # mine\nrelated: []\n---\nbody"
TARGET = f"---\nid: {A}\n---\n"


def relate(
    root: Path,
    source: str = "s.md",
    target: str = "t.md",
    *,
    rich: bool = True,
    may_add_id: bool = False,
    is_owner: bool = False,
) -> WrittenRelation:
    return add_relation(
        Vault(root, Rules()),
        source,
        target,
        rel="references",
        auto=True,
        rich=rich,
        may_add_id=may_add_id,
        is_owner=is_owner,
    )


def related(root: Path, name: str) -> tuple[Relation, ...]:
    return read_related(parse_note(name, (root / name).read_text()).frontmatter)


def visible(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.glob("*") if path.name[0] != "."}


def test_a_relation_is_written_in_the_rich_format(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": "---\nrelated:\n---\n", "t.md": TARGET})
    written = relate(root)
    assert written == WrittenRelation(
        "s.md", "t.md", A, "references", True, is_existing=False, is_id_added=False
    )
    assert visible(root) == {
        "s.md": f'---\nrelated:\n  - id: "{A}"\n    rel: "references"\n    auto: true\n---\n',
        "t.md": TARGET,
    }
    assert related(root, "s.md") == (Relation(A, "references", True),)


def test_a_relation_is_written_in_the_simple_format(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": TARGET})
    written = relate(root, rich=False)
    assert (written.rel, written.auto, written.is_existing) == ("", False, False)
    assert visible(root)["s.md"] == f'---\ntitle: S # mine\nrelated: ["{A}"]\n---\nbody'


def test_every_other_byte_of_the_source_stays(make_vault: MakeVault) -> None:
    before = b"\xef\xbb\xbf---\r\na:  'b'  # c\r\nrelated:\r\n- x # y\r\n---\r\nbody\r\n\r\nend"
    root = make_vault({"s.md": before, "t.md": TARGET})
    relate(root, rich=False)
    assert (root / "s.md").read_bytes() == before.replace(
        b"# y\r\n", b"# y\r\n" + f'- "{A}"\r\n'.encode()
    )


@pytest.mark.parametrize(
    "there", [f"[{A}]", f"[{A.upper()}]", f"\n- uuid: {A}\n  rel: of\n  auto: false", A]
)
def test_a_relation_that_exists_is_not_written_twice(make_vault: MakeVault, there: str) -> None:
    root = make_vault({"s.md": f"---\nrelated: {there}\n---\n", "t.md": TARGET})
    before = (root / "s.md").stat()
    written = relate(root)
    assert (written.is_existing, written.is_id_added, written.target_id) == (True, False, A)
    assert written.rel == ("of" if "rel" in there else "")
    after = (root / "s.md").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    relate(root)
    assert len(related(root, "s.md")) == 1


def test_a_link_that_looks_like_an_id_is_a_link(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": f'---\nrelated: ["[[{A}]]"]\n---\n', "t.md": TARGET})
    assert not relate(root).is_existing
    assert related(root, "s.md")[1:] == (Relation(A, "references", True),)


def test_the_word_for_a_relation_has_no_spaces_around_it(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": TARGET})
    assert (
        add_relation(
            Vault(root, Rules()), "s.md", "t.md", rel=" is of\n", auto=False, rich=True
        ).rel
        == "is of"
    )
    assert 'rel: "is of"' in (root / "s.md").read_text()


def test_a_target_is_named_by_its_legacy_uuid_too(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": f"---\nuuid: {B}\n---\n"})
    assert relate(root).target_id == B


def test_a_target_without_an_id_is_refused_with_the_next_step(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": SOURCE, "My target.md": "x"})
    with pytest.raises(InvalidArgument) as refused:
        relate(root, target="My target.md")
    assert refused.value.suggestion == "Add one with add_missing_id."
    assert visible(root) == {"s.md": SOURCE, "My target.md": "x"}


def test_a_target_without_an_id_gets_one_if_the_caller_allows(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": "x"})
    written = relate(root, may_add_id=True)
    assert (written.is_id_added, written.is_existing) == (True, False)
    found = read_id(parse_note("t.md", (root / "t.md").read_text()).frontmatter)
    assert found is not None and found.value == written.target_id
    assert related(root, "s.md") == (Relation(written.target_id, "references", True),)
    assert relate(root, may_add_id=True).is_existing


@pytest.mark.parametrize("bad", [A.upper(), "7", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"])
def test_a_target_whose_id_breaks_a_rule_is_refused(make_vault: MakeVault, bad: str) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": f"---\nid: {bad}\n---\n"})
    with pytest.raises(InvalidArgument):
        relate(root, may_add_id=True)
    assert visible(root)["s.md"] == SOURCE


def test_no_target_gets_an_id_for_a_source_that_cannot_be_edited(make_vault: MakeVault) -> None:
    notes = {"s.md": "---\nrelated: {a: 1}\n---\n", "t.md": "x"}
    root = make_vault(notes)
    with pytest.raises(InvalidArgument):
        relate(root, may_add_id=True)
    assert visible(root) == notes


def test_no_source_is_edited_for_a_target_that_cannot_get_an_id(make_vault: MakeVault) -> None:
    notes = {"s.md": SOURCE, "t.md": "---\na: [\n---\n"}
    root = make_vault(notes)
    with pytest.raises(InvalidArgument):
        relate(root, may_add_id=True)
    assert visible(root) == notes


@pytest.mark.parametrize("word", ["two\nlines", "x" * 101])
def test_a_word_that_cannot_be_written_is_refused(make_vault: MakeVault, word: str) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": TARGET})
    with pytest.raises(InvalidArgument):
        add_relation(Vault(root, Rules()), "s.md", "t.md", rel=word, auto=False, rich=True)
    assert visible(root)["s.md"] == SOURCE


def test_a_note_is_not_related_to_itself_by_any_of_its_names(make_vault: MakeVault) -> None:
    root = make_vault({"t.md": TARGET})
    (root / "alias.md").symlink_to("t.md")
    for source in ("t.md", "./t.md", "alias.md"):
        with pytest.raises(InvalidArgument):
            relate(root, source=source)
    assert visible(root)["t.md"] == TARGET


def test_a_source_edited_meanwhile_is_left_to_its_author(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": "x"})

    def make_late() -> str:
        # The moment between reading and writing cannot be met from outside.
        (root / "s.md").write_text("the user's")
        return B

    monkeypatch.setattr(note_edit, "make_id", make_late)
    with pytest.raises(NoteChanged):
        relate(root, may_add_id=True)
    assert visible(root) == {"s.md": "the user's", "t.md": f'---\nid: "{B}"\n---\nx'}


def test_write_protected_notes_are_left_alone(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": TARGET, "u.md": "x"})
    (root / "s.md").chmod(0o444)
    (root / "u.md").chmod(0o444)
    with pytest.raises(ReadOnly):
        relate(root)
    with pytest.raises(ReadOnly):
        relate(root, source="t.md", target="u.md", may_add_id=True)
    assert visible(root) == {"s.md": SOURCE, "t.md": TARGET, "u.md": "x"}


def test_links_out_of_the_vault_are_refused(make_vault: MakeVault, tmp_path: Path) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": TARGET})
    (tmp_path / "outside.md").write_text(TARGET)
    (root / "out.md").symlink_to("../outside.md")
    for source, target in (("s.md", "out.md"), ("out.md", "t.md"), ("s.md", "../outside.md")):
        with pytest.raises(SecurityViolation):
            relate(root, source=source, target=target)
    assert (tmp_path / "outside.md").read_text() == TARGET
    assert visible(root)["s.md"] == SOURCE


def test_a_canvas_has_no_relations(make_vault: MakeVault) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": TARGET, "c.canvas": "{}"})
    for source, target in (("c.canvas", "t.md"), ("s.md", "c.canvas")):
        with pytest.raises(InvalidArgument, match="Canvas"):
            relate(root, source=source, target=target, may_add_id=True)
    assert visible(root) == {"s.md": SOURCE, "t.md": TARGET, "c.canvas": "{}"}


def test_a_note_that_opted_out_is_not_found_except_by_its_owner(make_vault: MakeVault) -> None:
    secret = f"---\nrag: false\nid: {B}\n---\n"
    root = make_vault({"s.md": SOURCE, "t.md": TARGET, "x.md": secret})
    for source, target in (("s.md", "x.md"), ("x.md", "t.md"), ("s.md", "none.md")):
        with pytest.raises(NotFound) as refused:
            relate(root, source=source, target=target)
        hidden = source if source == "x.md" else target
        assert refused.value.message == f"No note '{hidden}'."
    assert visible(root) == {"s.md": SOURCE, "t.md": TARGET, "x.md": secret}
    assert relate(root, target="x.md", is_owner=True).target_id == B


CRASHING = """
import os, sys
from pathlib import Path
from obsidian_rag.relations.note_edit import add_relation
from obsidian_rag.vault import Rules, Vault

replace, calls = os.replace, []

def die(*args, **kwargs):
    calls.append(args)
    if len(calls) == int(sys.argv[2]):
        os._exit(9)
    replace(*args, **kwargs)

os.replace = die
vault = Vault(Path(sys.argv[1]), Rules())
add_relation(vault, "s.md", "t.md", rel="r", auto=False, rich=True, may_add_id=True)
"""


@pytest.mark.parametrize(("step", "target_has_id"), [(1, False), (2, True)])
def test_a_crash_at_either_write_leaves_whole_notes_and_the_work_can_be_done_again(
    make_vault: MakeVault, step: int, target_has_id: bool
) -> None:
    root = make_vault({"s.md": SOURCE, "t.md": "x"})
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, str(root), str(step)],
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 9
    assert visible(root)["s.md"] == SOURCE
    assert (visible(root)["t.md"] != "x") is target_has_id
    written = relate(root, may_add_id=True)
    assert written.is_id_added is not target_has_id
    assert related(root, "s.md") == (Relation(written.target_id, "references", True),)
