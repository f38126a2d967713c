"""Paths and ids: those of the real library; hostile names never reach the disk."""

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS

from obsidian_rag.livesync.codec.path_ids import (
    is_file_id,
    is_text,
    next_mtime,
    normalise,
    path_to_id,
    splits_as_text,
    takes_part,
    warns,
)
from obsidian_rag.livesync.merge import merges_as_json, merges_as_text
from obsidian_rag.vault import check_relative

Case = dict[str, Any]
RULES: list[Case] = VECTORS["filename_rules"]


def path_name(case: Case) -> str:
    case_rule = "blind" if case["caseInsensitive"] else "sensitive"
    return ascii(f"{case['path']}-{case_rule}-{case['obfuscatePassphrase'] or 'plain'}")


def rule_name(case: Case) -> str:
    return ascii(case["filename"])


@pytest.mark.parametrize("case", VECTORS["path2id"], ids=path_name)
def test_the_id_of_a_path_is_that_of_the_real_library(case: Case) -> None:
    found = path_to_id(
        case["path"],
        is_case_sensitive=not case["caseInsensitive"],
        obfuscation_passphrase=case["obfuscatePassphrase"] or None,
    )
    assert found == case["id"]


@pytest.mark.parametrize("case", RULES, ids=rule_name)
def test_a_name_decides_how_its_file_is_kept_and_merged(case: Case) -> None:
    name = case["filename"]
    assert is_text(name) == case["isPlainText"]
    assert splits_as_text(name) == case["shouldSplitAsPlainText"]
    assert merges_as_text(name) == case["sensibleMerge"]
    assert merges_as_json(name) == case["objectMerge"]


@pytest.mark.parametrize("case", RULES, ids=rule_name)
def test_a_file_takes_part_unless_the_real_library_ignores_or_cannot_write_it(case: Case) -> None:
    name = case["filename"]
    is_writable = case["validLinux"] and "\\" not in name
    assert (takes_part(name) is None) == (is_writable and not case["shouldBeIgnored"])


@pytest.mark.parametrize("case", RULES, ids=rule_name)
def test_a_file_that_some_system_cannot_write_is_told_of(case: Case) -> None:
    name = case["filename"]
    is_valid = all(case[f"valid{system}"] for system in ("Windows", "Darwin", "Linux", "Android"))
    if name == "CON.md":
        # The library looks for devices below a folder only; Windows does so everywhere.
        assert is_valid and warns(name)
    else:
        assert (warns(name) is None and takes_part(name) in (None, *OF_LIVESYNC)) == is_valid


OF_LIVESYNC = ("is a flag of LiveSync", "is a log of LiveSync")


@pytest.mark.parametrize("case", VECTORS["compareMTime"])
def test_times_are_compared_as_in_the_real_library(case: Case) -> None:
    base, target = case["base"], case["target"]
    assert (next_mtime(base) <= target) == (case["result"] == "TARGET_IS_NEW")
    assert (next_mtime(target) <= base) == (case["result"] == "BASE_IS_NEW")


def test_a_path_is_normalised_to_the_spelling_of_obsidian() -> None:
    assert normalise("Cafe\u0301/At 9\u202fAM\u00a0x.png") == "Caf\u00e9/At 9 AM x.png"


@given(st.text())
def test_normalising_twice_changes_nothing_more(path: str) -> None:
    assert normalise(normalise(path)) == normalise(path)


@pytest.mark.parametrize("path", ["note.md", "a b/ü.md", "_x.md", "x/CON.md", "Was?.md", 'a"#b.md'])
def test_an_ordinary_path_takes_part(path: str) -> None:
    assert takes_part(path) is None


@pytest.mark.parametrize("path", ["a.", "a ", "folder ./x.md", "aux", "lpt1.txt", "NUL .md", "a|b"])
def test_a_name_that_windows_cannot_write_is_told_of(path: str) -> None:
    assert warns(path)


@pytest.mark.parametrize("path", ["con/x.md", "CON.md", "aux.md", "CON", "a/nul/b.md"])
def test_a_name_of_a_device_of_windows_takes_part_with_and_without_an_extension(path: str) -> None:
    """A system that is not Windows can write them all, as the official client there does."""
    assert (takes_part(path), warns(path)) == (None, "has a name that Windows keeps for a device")


@pytest.mark.parametrize("path", ["auxiliary.md", "com10.md", "console", "a.b", "日本語.md"])
def test_a_name_that_all_systems_can_write_is_not_told_of(path: str) -> None:
    assert warns(path) is None


@pytest.mark.parametrize(
    "path",
    ["", "/", "/abs.md", "//server/share.md", "../x", "a/../../x", "a/..", "a/../b.md", "..", "."]
    + ["./a.md", "a/./b.md", "a//b.md", "a/", "a\\b.md", "..\\x", "\\\\server\\x", "C:/x.md", "C:"]
    + ["c:x.md", "x:y.md", "a.md:stream", "i:.obsidian/app.json", "h:abc", "f:abc", "a\x00.md"]
    + ["a\nb.md", "tab\there.md", "a\x7fb", "a\x85b", "\ud800.md", "~", "~/x"]
    + ["%2e%2e/x.md", "..%2fx.md", "\uff0e\uff0e/x.md", "\u2025/x.md", ".. /x.md"]
    + [".hidden/x", ".obsidian/plugins/x/main.js", "a/.git/config", ".trash/x.md", ".x.md"]
    + ["redflag.md", "RedFlag2.md", "redflag3.md", "flag_rebuild.md", "flag_fetch.md"]
    + ["livesync_log_2024.md", "LIVESYNC_LOG_x.md", "syncinfo", "SyncInfo"]
    + ["obsydian_livesync_version", "x" * 256, "ä" * 128 + ".md", "a/" + "x" * 256 + "/b.md"]
    + ["/".join(["folder"] * 400)],
    ids=ascii,
)
def test_a_hostile_path_is_never_touched(path: str) -> None:
    assert takes_part(path)


NASTY = [
    "..",
    ".",
    "",
    "~",
    "a",
    "b.md",
    "C:",
    "\\",
    "\0",
    "%2e",
    "．．",
    "CON",
    " ",
    "_",
    "i:",
    "x.",
]


@given(st.lists(st.sampled_from(NASTY) | st.text(max_size=4), max_size=6).map("/".join))
def test_whatever_takes_part_stays_in_the_vault_on_every_system(path: str) -> None:
    if takes_part(path):
        return
    assert check_relative(path) == path
    for flavour in (PurePosixPath(path), PureWindowsPath(path)):
        assert not flavour.is_absolute()
        assert not flavour.drive
        assert ".." not in flavour.parts
        assert flavour.as_posix() == path


@given(st.lists(st.sampled_from(NASTY) | st.text(max_size=4), max_size=6).map("/".join))
def test_whatever_takes_part_has_the_id_of_a_file(path: str) -> None:
    if takes_part(path):
        return
    doc_id = path_to_id(path, is_case_sensitive=True, obfuscation_passphrase=None)
    assert is_file_id(doc_id)
    hidden = path_to_id(path, is_case_sensitive=True, obfuscation_passphrase="secret")
    assert is_file_id(hidden)


@pytest.mark.parametrize(
    "doc_id",
    ["h:abc", "h:+abc", "i:.obsidian/app.json", "i:f:abc", "ix:dev/x", "ps:x", "_design/chunks"]
    + ["_local/x", "syncinfo", "obsydian_livesync_version"],
)
def test_what_belongs_to_livesync_is_no_file(doc_id: str) -> None:
    assert not is_file_id(doc_id)
