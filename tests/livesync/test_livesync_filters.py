"""LiveSync's filters mean here what they mean to LiveSync, and lose nothing on either side.

`filter_vectors.json` was made with Node's own RegExp and with minimatch as LiveSync calls it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.livesync.nodes import MakeNode, TestNode, sync

from obsidian_rag.errors import LivesyncIncompatible
from obsidian_rag.livesync.codec.tweaks import Tweaks
from obsidian_rag.livesync.filters.filters import Filters, FilterSettings
from obsidian_rag.livesync.filters.ignore_lines import IgnoreLines
from obsidian_rag.livesync.filters.js_regexp import JsRegExp, NotSupported

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "filter_vectors.json").read_text("utf-8")
)
BOTH = FilterSettings(ignore=r"secret\.md$|[]|\.tmp$")


@pytest.mark.parametrize("case", VECTORS["regexp"]["patterns"], ids=lambda one: one["pattern"])
def test_a_regular_expression_matches_what_javascript_matches(case: dict[str, Any]) -> None:
    regexp = JsRegExp(case["pattern"], ignores_case=case["ignores_case"])
    assert [path for path in VECTORS["regexp"]["paths"] if regexp.test(path)] == case["matches"]


@pytest.mark.parametrize("case", VECTORS["ignore"]["files"], ids=lambda one: str(one["lines"]))
def test_an_ignore_file_says_what_it_says_to_livesync(case: dict[str, Any]) -> None:
    lines = IgnoreLines("\r\n".join(case["lines"]))
    answers = {path: lines.accepts(path) for path in VECTORS["ignore"]["paths"]}
    assert {path: answer for path, answer in answers.items() if answer is not None} == case[
        "answers"
    ]


@pytest.mark.parametrize(
    "pattern",
    ["(a", "a)", "*a", "a**", "[z-a]", "a{2,1}", "\\", r"(a)\1", r"(?<n>a)\k<n>", "(?<=a*)b"]
    + ["(?i:a)", "(?>a)", "a*+", "(?<n>a)(?<n>b)", "[a", r"\101", "^*"],
)
def test_what_cannot_be_carried_over_is_refused(pattern: str) -> None:
    with pytest.raises(NotSupported):
        JsRegExp(pattern, ignores_case=True)


@pytest.mark.parametrize(
    "line", ["+(a|b).md", "[[:alpha:]].md", "{1..3}.md", "{a}.md", "a{b,c", "[é-ü].md"]
)
def test_a_line_that_cannot_be_carried_over_is_refused_by_its_number(line: str) -> None:
    if line == "a{b,c":
        assert IgnoreLines(line).accepts("a{b,c") is False  # no list, so the brace is itself
        return
    with pytest.raises(NotSupported, match="line 2"):
        IgnoreLines(f"# fine\n{line}")


@pytest.mark.parametrize("name", ["syncOnlyRegEx", "syncIgnoreRegEx"])
def test_a_bad_pattern_is_refused_with_the_name_of_its_setting(name: str) -> None:
    settings = (
        FilterSettings(only="(") if name == "syncOnlyRegEx" else FilterSettings(ignore="x|[]|(")
    )
    with pytest.raises(LivesyncIncompatible, match=name):
        Filters(settings, Tweaks(), Path())


def reasons(settings: FilterSettings, root: Path, *paths: str, **tweaks: Any) -> dict[str, bool]:
    filters = Filters(settings, Tweaks(**tweaks), root)
    return {path: filters.reason(path) is None for path in paths}


def test_patterns_are_a_list_without_spaces_that_can_be_negated(tmp_path: Path) -> None:
    settings = FilterSettings(only=r"^Notes/|[]|^My Folder/", ignore="!!^Notes/")
    assert reasons(settings, tmp_path, "Notes/a.md", "My Folder/a.md", "MyFolder/a.md") == {
        "Notes/a.md": True,
        "My Folder/a.md": False,  # LiveSync takes the space out of the pattern
        "MyFolder/a.md": False,  # among the first, but the second wants notes only
    }


def test_case_counts_where_the_devices_agreed_that_it_does(tmp_path: Path) -> None:
    settings = FilterSettings(ignore="^secret")
    assert reasons(settings, tmp_path, "Secret.md") == {"Secret.md": False}
    sensitive = {"handle_filename_case_sensitive": True}
    assert reasons(settings, tmp_path, "Secret.md", **sensitive) == {"Secret.md": True}


def test_the_nearest_ignore_file_decides(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("**/*.tmp\n")
    (tmp_path / "a" / ".gitignore").write_text("!**/keep.tmp\nnested.md\n")
    (tmp_path / "a" / "b" / ".ignore").write_text("only-here.md\n")
    settings = FilterSettings(uses_ignore_files=True, ignore_files=".gitignore, .ignore")
    assert reasons(
        settings, tmp_path, "x.tmp", "a/x.tmp", "a/b/keep.tmp", "a/nested.md", "a/b/nested.md",
        "a/b/only-here.md", "a/only-here.md",
    ) == {
        "x.tmp": False, "a/x.tmp": False, "a/b/keep.tmp": True, "a/nested.md": False,
        "a/b/nested.md": True, "a/b/only-here.md": False, "a/only-here.md": True,
    }  # fmt: skip


def test_ignore_files_count_when_a_device_or_the_database_says_so(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("x.md\n")
    (tmp_path / "other").write_text("x.md\n")
    agreed = Tweaks.from_preferred({"useIgnoreFiles": True, "ignoreFiles": "other"})
    (tmp_path / "other").write_text("y.md\n")
    assert Filters(FilterSettings(), Tweaks(), tmp_path).reason("x.md") is None
    assert Filters(FilterSettings(), agreed, tmp_path).reason("x.md") is None
    assert Filters(FilterSettings(), agreed, tmp_path).reason("y.md") == "is ignored by other"
    told = FilterSettings(uses_ignore_files=True, ignore_files=".gitignore")
    assert Filters(told, agreed, tmp_path).reason("x.md") == "is ignored by .gitignore"
    assert Filters(FilterSettings(uses_ignore_files=False), agreed, tmp_path).reason("y.md") is None


def test_below_an_ignore_file_that_cannot_be_read_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".gitignore").symlink_to("/etc/hostname")
    filters = Filters(FilterSettings(uses_ignore_files=True), Tweaks(), tmp_path)
    assert filters.reason("a/x.md") == "is below a/.gitignore, which cannot be read"
    assert filters.reason("x.md") is None


# -- between two devices


def paths_there(node: TestNode) -> set[str]:
    """What the database has as living files."""
    ids = node.couch.list_ids(start="", end="\U0010ffff", limit=1000)
    documents = node.couch.all_docs([doc_id for doc_id, _ in ids])
    return {
        str(one["path"])
        for one in documents.values()
        if one.get("type") in ("plain", "newnote") and not one.get("deleted")
    }


def planted(node: TestNode) -> None:
    node.write("note.md", "a note\n")
    node.write("secret.md", "a secret\n")
    node.write("Work/scratch.tmp", "scratch\n")


def test_nothing_that_a_filter_keeps_back_is_sent(make_node: MakeNode) -> None:
    ours = make_node("ours", filters=BOTH)
    planted(ours)
    reconciler = ours.sync()
    assert paths_there(ours) == {"note.md"}
    assert reconciler.sync.disk.filtered == {
        "Work/scratch.tmp": "matches syncIgnoreRegEx",
        "secret.md": "matches syncIgnoreRegEx",
    }
    ours.write("secret.md", "changed\n")
    (ours.root / "Work" / "scratch.tmp").unlink()
    ours.sync()
    assert paths_there(ours) == {"note.md"}


def test_nothing_that_a_filter_keeps_out_is_taken(make_node: MakeNode) -> None:
    other, ours = make_node("other"), make_node("ours", filters=BOTH)
    planted(other)
    other.sync()
    reconciler = ours.sync()
    assert set(ours.files()) == {"note.md"}
    assert reconciler.owed == set()
    assert ours.records.quarantined() == []
    assert sum(one.count for one in reconciler.report().not_synced if one.kind == "filtered") == 2


@pytest.mark.parametrize("direction", ["both", "push", "pull"])
def test_a_new_filter_deletes_nothing_on_either_side(make_node: MakeNode, direction: str) -> None:
    ours, other = make_node("ours"), make_node("other")
    planted(ours)
    sync(ours, other)
    everything = {"note.md", "secret.md", "Work/scratch.tmp"}
    assert set(other.files()) == everything
    ours.filters = BOTH
    ours.sync(direction=direction)
    ours.sync(direction=direction)
    other.sync()
    assert paths_there(ours) == set(other.files()) == set(ours.files()) == everything
    assert ours.trashed() == other.trashed() == []


def test_changes_behind_a_filter_do_not_count_as_deletions_when_it_is_lifted(
    make_node: MakeNode,
) -> None:
    ours, other = make_node("ours"), make_node("other")
    planted(ours)
    sync(ours, other)
    ours.filters = BOTH
    ours.sync()
    (ours.root / "secret.md").unlink()  # here, while the filter keeps it apart
    ours.sync()
    (other.root / "Work" / "scratch.tmp").unlink()  # and there
    other.write("new.tmp", "made meanwhile\n")
    other.sync()
    assert set(other.files()) == {"note.md", "secret.md", "new.tmp"}
    ours.sync()
    assert set(ours.files()) == {"note.md", "Work/scratch.tmp"}
    ours.filters = FilterSettings()
    sync(ours, other)
    everything = {"note.md", "secret.md", "Work/scratch.tmp", "new.tmp"}
    assert set(ours.files()) == set(other.files()) == everything
    assert ours.trashed() == []


def test_an_ignore_file_that_changes_counts_at_the_next_look(make_node: MakeNode) -> None:
    ours, other = make_node("ours", filters=FilterSettings(uses_ignore_files=True)), make_node("o")
    ours.write(".gitignore", "secret.md\n**/*.tmp\n")
    planted(ours)
    ours.sync()
    assert paths_there(ours) == {"note.md"}
    ours.write(".gitignore", "**/*.tmp\n")
    sync(ours, other)
    assert set(other.files()) == {"note.md", "secret.md"}


def test_only_what_is_chosen_is_synced(make_node: MakeNode) -> None:
    ours = make_node("ours", filters=FilterSettings(only=r"^Shared/.*\.md$"))
    ours.write("Shared/a.md", "shared\n")
    ours.write("Shared/a.png", b"\x89PNG")
    ours.write("private.md", "private\n")
    ours.sync()
    assert paths_there(ours) == {"Shared/a.md"}
