import os
import socket
from pathlib import Path

import pytest

from obsidian_rag.errors import SecurityViolation
from obsidian_rag.vault import boundary, check_relative, resolve
from obsidian_rag.vault.boundary import NotANote, open_inside, relative_to_root

REFUSED = [
    "",
    ".",
    "./",
    "..",
    "../x.md",
    "a/../../x.md",
    "a/..",
    ".. /x.md",
    "..\\x.md",
    "a\\..\\..\\x.md",
    "\\x.md",
    "/etc/passwd",
    "//server/share/x.md",
    "\\\\server\\share\\x.md",
    "C:",
    "C:\\x.md",
    "c:/x.md",
    "%2e%2e/x.md",
    "%2E%2E%2Fx.md",
    "%252e%252e/x.md",
    "%25252e%25252e/x.md",
    "a/%2e./x.md",
    "..%5cx.md",
    "%2fetc/passwd",
    "%43%3a%5cx.md",
    "./C:/x.md",
    "./%2fetc/passwd",
    "./\\x.md",
    "x%00.md",
    "．．/x.md",
    "‥/x.md",
    "．．／x.md",
    "%ef%bc%8e%ef%bc%8e/x.md",
    "x\0.md",
    "x\x1b[2J.md",
    "x\x9b2J.md",
    "x\udcff.md",
    "~/x.md",
    "a/~/x.md",
]
KEPT = [
    "note.md",
    "Journal/2024-01-15.md",
    "100%25.md",
    "50% off.md",
    "100%.md",
    "a..b/..c/d...md",
    "back\\slash.md",
    "…/x.md",
    "／r／python.md",
    "con.md",
    "CON",
    "a/Aux/x.md",
    "LPT9",
    "console/x.md",
    "~draft.md",
    "Q: why?.md",
    "line\nbreak.md",
    "日本語/ノート.md",
    "Ünïcode.md",
]


@pytest.mark.parametrize("rel", REFUSED)
def test_a_path_that_could_mean_something_outside_is_refused(rel: str) -> None:
    with pytest.raises(SecurityViolation) as caught:
        check_relative(rel)
    assert caught.value.code == "SECURITY_VIOLATION"
    assert caught.value.suggestion


@pytest.mark.parametrize("rel", KEPT)
def test_a_legal_note_path_is_kept_as_it_is(rel: str) -> None:
    assert check_relative(rel) == rel


def test_empty_and_dot_parts_are_dropped() -> None:
    assert check_relative("./a//b/./c.md") == "a/b/c.md"
    assert check_relative("a/b/") == "a/b"


@pytest.mark.parametrize(
    "rel",
    [
        "CON",
        "nul",
        "a/Aux/x.md",
        "com1",
        "LPT9",
        "con.md",
        "a/NUL.txt",
        "aux .md",
        "note.md:stream",
        "a./b.md",
        "a /b.md",
        "C:x.md",
    ],
)
def test_windows_refuses_its_own_special_names(rel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # There is no Windows here; the check itself is pure text.
    monkeypatch.setattr(boundary, "_WINDOWS", True)
    with pytest.raises(SecurityViolation):
        check_relative(rel)


def test_windows_reads_a_backslash_as_a_separator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "_WINDOWS", True)
    assert check_relative("Journal\\a.md") == "Journal/a.md"


def test_resolve_works_for_notes_that_do_not_exist_yet(tmp_path: Path) -> None:
    assert resolve(tmp_path, "new/folder/note.md") == tmp_path / "new/folder/note.md"


def test_resolve_follows_links_that_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert resolve(tmp_path, "link/note.md") == tmp_path / "real/note.md"


@pytest.mark.parametrize("target", ["..", "../outside", "/etc", "../vault-evil"])
def test_resolve_refuses_links_that_lead_out(tmp_path: Path, target: str) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "vault-evil").mkdir()
    (root / "link").symlink_to(target)
    (root / "chain").symlink_to("link")
    for rel in ("link/x.md", "chain/x.md", "link", "chain"):
        with pytest.raises(SecurityViolation):
            resolve(root, rel)


def test_a_symlinked_root_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.md").write_text("a")
    (tmp_path / "vault").symlink_to("real")
    assert resolve(tmp_path / "vault", "a.md") == tmp_path / "real/a.md"
    with open_inside(tmp_path / "vault", "a.md") as stream:
        assert stream.read() == b"a"


def test_relative_to_root_accepts_both_spellings(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (tmp_path / "alias").symlink_to("vault")
    (tmp_path / "detour").symlink_to(".")
    for path in ("a/b.md", f"{root}/a/b.md", f"{root}//a/./b.md"):
        assert relative_to_root(root, path) == "a/b.md"
    assert relative_to_root(tmp_path / "alias", f"{tmp_path}/alias/b.md") == "b.md"
    assert relative_to_root(tmp_path / "alias", f"{root}/b.md") == "b.md"
    assert relative_to_root(root, f"{tmp_path}/detour/vault/b.md") == "b.md"


def test_relative_to_root_refuses_other_places(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    for path in (
        "/etc/passwd",
        f"{tmp_path}/vault-evil/a.md",
        f"{root}/../x.md",
        f"{root}",
        f"{root}/a\0.md",
        "../x.md",
    ):
        with pytest.raises(SecurityViolation):
            relative_to_root(root, path)


def test_open_refuses_what_is_not_a_regular_file_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.md")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "link.md").symlink_to("fifo.md")
    (tmp_path / "self").symlink_to(".")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.md"))
        for rel in ("fifo.md", "folder.md", "link.md", "socket.md", "self"):
            with pytest.raises(NotANote) as caught:
                open_inside(tmp_path, rel)
            assert caught.value.reason == "not_a_file"


def test_open_refuses_links_out_and_loops(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (tmp_path / "secret.md").write_text("secret")
    (root / "out.md").symlink_to("../secret.md")
    (root / "up").symlink_to("..")
    (root / "loop.md").symlink_to("loop.md")
    for rel in ("out.md", "up/secret.md", "loop.md"):
        with pytest.raises(SecurityViolation):
            open_inside(root, rel)


@pytest.mark.parametrize("by_descriptor", [True, False])
def test_a_link_put_in_place_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_descriptor: bool
) -> None:
    # The race needs a file system that changes between our check and our open, at a set moment.
    root = tmp_path / "vault"
    (root / "folder").mkdir(parents=True)
    (root / "alias").symlink_to("folder")
    (root / "folder/note.md").write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/note.md").write_text("secret")
    checked = boundary._resolve_paths

    def check_then_swap(root: Path, rel: str) -> tuple[str, str]:
        found = checked(root, rel)
        (root / "folder").rename(root / "gone")
        (root / "folder").symlink_to("../outside")
        monkeypatch.setattr(boundary, "_resolve_paths", checked)
        return found

    monkeypatch.setattr(boundary, "_resolve_paths", check_then_swap)
    monkeypatch.setattr(boundary, "_WALKS_BY_DESCRIPTOR", by_descriptor)
    with pytest.raises(SecurityViolation):
        open_inside(root, "alias/note.md")


def test_a_name_that_is_harmless_at_a_glance_passes_the_full_check() -> None:
    for rel in (*REFUSED, *KEPT):
        if "/" not in rel and boundary.is_harmless(rel):
            assert check_relative(rel) == rel


@pytest.mark.parametrize(
    ("bits", "value", "expected"),
    [
        (("st_file_attributes", 0x401000), 0x400000, True),
        (("st_file_attributes", 0x401000), 0x1000, True),
        (("st_file_attributes", 0x401000), 0x20, False),
        (("st_flags", 0x40000000), 0x40000000, True),
        (None, 0xFFFFFFFF, False),
    ],
)
def test_cloud_placeholders_are_recognised(
    bits: tuple[str, int] | None, value: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Linux reports neither attribute, so the status is made up.
    class Status:
        st_file_attributes = value
        st_flags = value

    monkeypatch.setattr(boundary, "_PLACEHOLDER_BITS", bits)
    assert boundary.is_placeholder(Status()) is expected  # type: ignore[arg-type]  # see above


def test_opening_leaks_no_descriptors(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/note.md").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for rel in ("a/b/note.md", "a/b/none.md", "a/none/x.md", "a/b", "loop/x.md", "a/b/note.md/x"):
        try:
            open_inside(tmp_path, rel).close()
        except (OSError, SecurityViolation):
            continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before
