import pytest

from obsidian_rag.config import IndexingSettings
from obsidian_rag.vault import Rules


def _settings(**changes: object) -> IndexingSettings:
    return IndexingSettings.model_validate(changes)


def test_rules_come_from_the_settings() -> None:
    rules = Rules.from_settings(_settings(max_file_mb=0.5, allow_dirs=("Journal",)))
    assert rules == Rules(
        file_patterns=("*.md", "*.canvas"),
        deny_dirs=(".obsidian", ".trash", "zzz-Archive", ".git", ".logseq"),
        allow_dirs=("Journal",),
        max_file_bytes=512 * 1024,
    )


@pytest.mark.parametrize(
    ("rel", "admitted"),
    [
        ("a.md", True),
        ("A.MD", True),
        ("deep/er/board.canvas", True),
        ("a.txt", False),
        ("a.md.bak", False),
        (".hidden.md", False),
        (".hidden/a.md", False),
        ("x/.obsidian/a.md", False),
        ("x/zzz-Archive/a.md", False),
        ("x/ZZZ-archive/y/a.md", False),
        ("zzz-Archive.md", True),
    ],
)
def test_default_rules(rel: str, admitted: bool) -> None:
    assert Rules.from_settings(_settings()).admits_file(rel) is admitted


@pytest.mark.parametrize(
    ("entry", "denied", "kept"),
    [
        ("Archive", ["Archive", "a/Archive", "archive/b"], ["Archives", "a"]),
        ("Work/Secret", ["Work/Secret", "work/secret/x"], ["Secret", "a/Work/Secret", "Work"]),
        ("/Top", ["Top", "Top/a"], ["a/Top"]),
        ("tmp*", ["tmp", "a/tmp1"], ["atmp"]),
        ("Work/*/Private", ["Work/a/Private"], ["Work/a", "Private"]),
        ("**/Private", ["Private", "a/b/Private"], ["a"]),
        ("**/x/Private", ["x/Private", "a/x/Private/y"], ["Private"]),
        ("a/**/z", ["a/z", "a/b/c/z"], ["z", "a"]),
        ("Private/**", ["Private", "Private/a"], ["a"]),
        ("Work/Private/*", ["Work/Private", "Work/Private/a"], ["Work"]),
        ("Work\\Private", ["Work/Private"], ["Work"]),
        ("./Work/", ["Work"], ["a"]),
        ("[Archive]", ["[Archive]", "a/[archive]"], ["Archive"]),
        ("Caf\u00e9", ["Cafe\u0301", "CAF\u00c9"], ["Cafe"]),
        ("", [], ["a"]),
        ("/*", ["a", "b"], []),
    ],
)
def test_deny_entries(entry: str, denied: list[str], kept: list[str]) -> None:
    rules = Rules(deny_dirs=(entry,))
    assert [folder for folder in denied if rules.admits_dir(folder)] == []
    assert [folder for folder in denied if rules.admits_file(f"{folder}/n.md")] == []
    assert [folder for folder in kept if not rules.admits_file(f"{folder}/n.md")] == []
    assert rules.admits_file("n.md")


def test_allow_opens_only_the_named_folders_and_lets_the_walk_reach_them() -> None:
    rules = Rules(allow_dirs=("Journal", "Work/Public/"))
    assert rules.admits_file("Journal/a.md")
    assert rules.admits_file("journal/2024/a.md")
    assert rules.admits_file("Work/Public/x/a.md")
    assert rules.admits_dir("")
    assert rules.admits_dir("Work")
    for rel in ("a.md", "Work/a.md", "Work/Other/a.md", "x/Journal/a.md", "Journals/a.md"):
        assert not rules.admits_file(rel)
    for rel in ("Other", "x", "Work/Other", "x/Journal"):
        assert not rules.admits_dir(rel)


def test_allow_takes_globs_per_part() -> None:
    rules = Rules(allow_dirs=("Projects/*/notes",))
    assert rules.admits_file("Projects/a/notes/n.md")
    assert not rules.admits_file("Projects/a/b/notes/n.md")
    assert not rules.admits_file("Projects/a/n.md")
    assert Rules(allow_dirs=("Projects/**",)).admits_file("Projects/n.md")


def test_allowing_the_root_opens_everything_and_a_blank_entry_nothing() -> None:
    assert Rules(allow_dirs=(".",)).admits_file("a/b.md")
    assert not Rules(allow_dirs=("",)).admits_file("a/b.md")


def test_deny_and_hidden_win_over_allow() -> None:
    rules = Rules(deny_dirs=("Secret",), allow_dirs=("Journal", "Secret", ".obsidian"))
    assert not rules.admits_dir("Secret")
    assert not rules.admits_dir("Journal/Secret")
    assert not rules.admits_dir(".obsidian")
    assert rules.denies_dir("Journal/Secret/deep")
    assert not rules.denies_dir("Journal")


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*", ["a.md", "x/a"], []),
        ("note-*.md", ["x/note-1.md"], ["x/anote-1.md"]),
        ("**/*.md", ["a.md", "x/y/a.md"], ["a.txt"]),
        ("Journal/*.md", ["Journal/a.md", "journal/x/a.md"], ["a.md", "x/Journal/a.md"]),
        ("Journal/**/*.md", ["Journal/a.md", "Journal/x/a.md"], ["a.md"]),
        ("*.m[dk]", ["a.md", "a.mk"], ["a.mx"]),
        ("É*.md", ["e\u0301te.md", "été.md"], ["ete.md"]),
    ],
)
def test_file_patterns(pattern: str, matching: list[str], other: list[str]) -> None:
    rules = Rules(file_patterns=(pattern,))
    assert [rel for rel in matching if not rules.admits_file(rel)] == []
    assert [rel for rel in other if rules.admits_file(rel)] == []


def test_a_very_deep_path_is_judged() -> None:
    assert Rules(deny_dirs=("z",)).admits_dir("a/" * 3000 + "b")
    assert not Rules(deny_dirs=("z",)).admits_dir("a/" * 3000 + "z")
