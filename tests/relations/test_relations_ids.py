import os
from pathlib import Path

import pytest
from tests.fixture_types import MakeVault
from tests.folders import files_below

from obsidian_rag.errors import (
    IndexerFailed,
    InvalidArgument,
    NotFound,
    ObsidianRagError,
    ReadOnly,
    SecurityViolation,
)
from obsidian_rag.errors import NoteChanged as Changed
from obsidian_rag.notes import NoteId, parse_note, read_id
from obsidian_rag.notes.identity import id_trouble
from obsidian_rag.relations import note_edit
from obsidian_rag.relations.ids import DuplicateId, FoundId, check_ids
from obsidian_rag.relations.note_edit import AddOutcome, add_id, add_note_ids, open_for_edit
from obsidian_rag.vault import Rules, Vault

A = "550e8400-e29b-41d4-a716-446655440000"
B = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
V1 = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def found(value: object, field: str = "id") -> NoteId | None:
    return read_id({field: value})


def test_id_rule_notes_without_an_id_or_legacy_uuid_are_reported() -> None:
    report = check_ids([("b.md", None), ("a.md", None), ("c.md", found(A))])
    assert report.missing == ("a.md", "b.md")
    assert (report.notes, report.is_clean) == (3, False)


def test_id_rule_duplicates_are_flagged_and_the_first_in_path_order_keeps_the_id() -> None:
    report = check_ids([("z.md", found(A)), ("m.md", found(B)), ("a.md", found(A.upper()))])
    assert report.duplicates == (DuplicateId(A, "a.md", ("z.md",)),)
    assert report.owners == {A: "a.md", B: "m.md"}
    assert not report.is_clean


def test_id_rule_an_id_must_be_a_valid_uuid_v4() -> None:
    bad = {"number.md": 202401051200, "v1.md": V1, "bare.md": A.replace("-", ""), "list.md": [A]}
    report = check_ids([(path, found(value)) for path, value in bad.items()])
    assert [(one.path, one.id.trouble) for one in report.invalid] == [
        ("bare.md", "not_hyphenated"),
        ("list.md", "not_text"),
        ("number.md", "not_a_uuid"),
        ("v1.md", "not_v4"),
    ]
    assert report.not_lower_case == ()


def test_id_rule_an_id_must_be_in_lower_case() -> None:
    report = check_ids([("a.md", found(A.upper()))])
    assert report.not_lower_case == (FoundId("a.md", NoteId(A.upper(), "id", "not_lower_case")),)
    assert (report.invalid, report.is_clean) == ((), False)


def test_id_rule_the_legacy_uuid_field_is_accepted_and_named() -> None:
    report = check_ids([("a.md", found(A, "uuid")), ("b.md", found(B))])
    assert report.legacy == ("a.md",)
    assert report.is_clean


def test_values_that_are_no_uuid_are_not_compared() -> None:
    report = check_ids([("a.md", found(7)), ("b.md", found(7)), ("c.md", found([]))])
    assert (report.duplicates, report.owners) == ((), {})


def test_a_vault_without_notes_is_clean() -> None:
    assert check_ids([]).is_clean


def test_an_id_is_written_first_and_every_other_byte_stays(make_vault: MakeVault) -> None:
    before = (
        b"\xef\xbb\xbf---\r\n# mine\r\ntitle: 'T'   \r\n---\r\n# \xf0\x9f\x8e\x89\r\nno newline"
    )
    root = make_vault({"a.md": before})
    (root / "a.md").chmod(0o640)
    added = add_id(Vault(root, Rules()), "a.md")
    assert (added.path, added.outcome, id_trouble(added.id)) == ("a.md", AddOutcome.ADDED, "")
    line = f'id: "{added.id}"\r\n'.encode()
    assert files_below(root) == {"a.md": before[:8] + line + before[8:]}
    assert (root / "a.md").stat().st_mode & 0o777 == 0o640


def test_a_note_without_frontmatter_gets_one(make_vault: MakeVault) -> None:
    root = make_vault({"Folder/a.md": "# T\n", "empty.md": ""})
    added = add_id(Vault(root, Rules()), "./Folder//a.md")
    assert added.path == "Folder/a.md"
    assert (root / "Folder/a.md").read_text() == f'---\nid: "{added.id}"\n---\n# T\n'
    assert add_id(Vault(root, Rules()), "empty.md").outcome == "added"


@pytest.mark.parametrize("field", ["id", "uuid"])
def test_id_rule_an_id_never_changes_once_assigned(make_vault: MakeVault, field: str) -> None:
    root = make_vault({"a.md": f"---\n{field}: {A}\n---\n"})
    before = (root / "a.md").stat()
    added = add_id(Vault(root, Rules()), "a.md")
    assert (added.outcome, added.id) == (AddOutcome.EXISTING, A)
    after = (root / "a.md").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_dry_run_writes_nothing_and_meets_the_same_refusals(make_vault: MakeVault) -> None:
    notes = {"a.md": "x", "b.md": "---\na: [\n---\n", "c.md": f"---\nid: {A}\n---\n"}
    root = make_vault(notes)
    outcomes = [
        (one.path, one.outcome, one.id)
        for one in add_note_ids(Vault(root, Rules()), notes, is_dry_run=True)
    ]
    assert outcomes == [("a.md", "planned", ""), ("b.md", "failed", ""), ("c.md", "existing", A)]
    assert files_below(root) == {path: text.encode() for path, text in notes.items()}


def test_one_bad_note_does_not_stop_the_others(make_vault: MakeVault) -> None:
    root = make_vault({"a.md": "---\n{a: 1}\n---\n", "b.md": "x", "c.canvas": "{}"})
    added = [
        *add_note_ids(
            Vault(root, Rules()), ["a.md", "gone.md", "../x.md", "c.canvas", "b.md", "b.md"]
        )
    ]
    assert [(one.path, one.outcome, one.error and one.error["code"]) for one in added] == [
        ("a.md", "failed", "INVALID_ARGUMENT"),
        ("gone.md", "failed", "NOT_FOUND"),
        ("../x.md", "failed", "SECURITY_VIOLATION"),
        ("c.canvas", "failed", "INVALID_ARGUMENT"),
        ("b.md", "added", None),
    ]


def test_every_added_id_is_another(make_vault: MakeVault) -> None:
    names = [f"{number}.md" for number in range(20)]
    root = make_vault(dict.fromkeys(names, "x"))
    assert len({one.id for one in add_note_ids(Vault(root, Rules()), names)}) == 20
    read = [
        (name, read_id(parse_note(name, (root / name).read_text()).frontmatter)) for name in names
    ]
    assert check_ids(read).is_clean


@pytest.mark.parametrize(
    "text",
    [
        "---\nid: 202401051200\n---\n",
        f"---\nid: {A.upper()}\n---\n",
        "---\na: b: c\n---\n",
        "---\na: 1\n",
        "---\n{a: 1}\n---\n",
    ],
)
def test_a_note_that_cannot_be_edited_safely_is_left_alone(
    make_vault: MakeVault, text: str
) -> None:
    root = make_vault({"a.md": text})
    with pytest.raises(InvalidArgument) as refused:
        add_id(Vault(root, Rules()), "a.md")
    assert "'a.md' is unchanged" in refused.value.message and refused.value.suggestion
    assert files_below(root) == {"a.md": text.encode()}


def test_a_note_edited_meanwhile_is_left_to_its_author(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_vault({"a.md": "mine"})

    def make_late() -> str:
        # The moment between reading and writing cannot be met from outside.
        (root / "a.md").write_text("the user's")
        return A

    monkeypatch.setattr(note_edit, "make_id", make_late)
    with pytest.raises(Changed):
        add_id(Vault(root, Rules()), "a.md")
    assert files_below(root) == {"a.md": b"the user's"}


@pytest.mark.parametrize("late", [b"the user's", None])
def test_saving_compares_with_what_was_opened(make_vault: MakeVault, late: bytes | None) -> None:
    root = make_vault({"a.md": "mine"})
    opened = open_for_edit(Vault(root, Rules()), "a.md", is_owner=False)
    if late is None:
        (root / "a.md").unlink()
    else:
        (root / "a.md").write_bytes(late)
    with pytest.raises(Changed):
        opened.save("ours")
    assert files_below(root) == ({} if late is None else {"a.md": late})


def test_a_write_protected_note_is_left_alone(make_vault: MakeVault) -> None:
    root = make_vault({"a.md": "x"})
    (root / "a.md").chmod(0o444)
    with pytest.raises(ReadOnly):
        add_id(Vault(root, Rules()), "a.md")
    assert files_below(root) == {"a.md": b"x"}


def test_a_full_disk_leaves_the_note_and_no_litter(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_vault({"a.md": "x"})

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)  # a full disk cannot be had in a test
        with pytest.raises(IndexerFailed):
            add_id(Vault(root, Rules()), "a.md")
    assert files_below(root) == {"a.md": b"x"}


def test_a_link_out_of_the_vault_is_not_followed(make_vault: MakeVault, tmp_path: Path) -> None:
    root = make_vault({"real.md": "x"})
    (tmp_path / "outside.md").write_text("x")
    (root / "out.md").symlink_to("../outside.md")
    (root / "in.md").symlink_to("real.md")
    for rel in ("out.md", "../outside.md", str(tmp_path / "outside.md"), ".."):
        with pytest.raises(SecurityViolation):
            add_id(Vault(root, Rules()), rel)
    assert (tmp_path / "outside.md").read_text() == "x"
    added = add_id(Vault(root, Rules()), "in.md")
    assert (root / "in.md").is_symlink()
    assert added.id in (root / "real.md").read_text()


def test_hidden_files_are_not_written(make_vault: MakeVault) -> None:
    root = make_vault({".trash/a.md": "x"})
    with pytest.raises(SecurityViolation):
        add_id(Vault(root, Rules()), ".trash/a.md")
    assert files_below(root) == {".trash/a.md": b"x"}


@pytest.mark.parametrize("name", ["a.canvas", "A.CANVAS", "a.json", "a.js", "a", "a.md.txt", "md"])
def test_only_markdown_notes_get_an_id(make_vault: MakeVault, name: str) -> None:
    root = make_vault({name: "{}"})
    with pytest.raises(InvalidArgument):
        add_id(Vault(root, Rules()), name)
    (root / "alias.md").symlink_to(name)
    with pytest.raises(InvalidArgument):
        add_id(Vault(root, Rules()), "alias.md")
    assert (root / name).read_text() == "{}"


@pytest.mark.parametrize("policy", ["rag: false", "rag: off\na: [", "RAG: 'no'"])
def test_a_note_that_opted_out_is_as_good_as_missing_except_to_its_owner(
    make_vault: MakeVault, policy: str
) -> None:
    root = make_vault({"a.md": f"---\n{policy}\n---\n"})
    answers = []
    for present in (True, False):
        if not present:
            (root / "a.md").unlink()
        with pytest.raises(NotFound) as refused:
            add_id(Vault(root, Rules()), "a.md")
        answers.append(refused.value.body)
    assert answers[0] == answers[1]


def test_the_owner_may_give_an_id_to_any_note(make_vault: MakeVault) -> None:
    root = make_vault({"a.md": "---\nrag: false\n---\n", "p.md": "---\nrag: private\n---\n"})
    assert add_id(Vault(root, Rules()), "a.md", is_owner=True).outcome == "added"
    assert add_id(Vault(root, Rules()), "p.md").outcome == "added"
    assert parse_note("a.md", (root / "a.md").read_text()).policy == "never"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"\xff\xff", IndexerFailed),
        (b"caf\xe9", ReadOnly),
        (b"x" * 101, IndexerFailed),
        (None, NotFound),
    ],
)
def test_what_cannot_be_read_is_not_written(
    make_vault: MakeVault, content: bytes | None, error: type[ObsidianRagError]
) -> None:
    root = make_vault({} if content is None else {"a.md": content})
    with pytest.raises(error):
        add_id(Vault(root, Rules(max_file_bytes=100)), "a.md")
    assert files_below(root) == ({} if content is None else {"a.md": content})
