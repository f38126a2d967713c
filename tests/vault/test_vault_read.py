import io
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from obsidian_rag.errors import NoteChanged, SecurityViolation
from obsidian_rag.vault import NoteFile, SkippedFile, content_hash, read_note
from obsidian_rag.vault import read as read_module
from obsidian_rag.vault.boundary import open_inside

LIMIT = 1000


def _read(root: Path, data: bytes) -> NoteFile | SkippedFile:
    (root / "n.md").write_bytes(data)
    return read_note(root, "n.md", LIMIT)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("Grüße\r\n日本".encode(), "Grüße\r\n日本"),
        (b"\xef\xbb\xbfabc", "abc"),
        (b"\xef\xbb\xbf\xef\xbb\xbfabc", "\ufeffabc"),
    ],
)
def test_utf8_is_read_with_or_without_a_mark(tmp_path: Path, data: bytes, text: str) -> None:
    note = _read(tmp_path, data)
    assert isinstance(note, NoteFile)
    assert (note.rel_path, note.data, note.text) == ("n.md", data, text)
    status = (tmp_path / "n.md").stat()
    assert note.entry == ("n.md", len(data), status.st_mtime_ns, status.st_ino)


@pytest.mark.parametrize(
    ("text", "encoding", "told"),
    [
        ("Grüße", "latin-1", "windows-1252"),
        ("It’s a “note” — of café au lait", "cp1252", "windows-1252"),
        ("# Książka\n\nZażółć gęślą jaźń, świeże pączki i żółty ser.", "cp1250", "windows-1250"),
        ("Привет, мир! Сегодня хорошая погода.", "cp1251", "windows-1251"),
        ("Привет, мир! Сегодня хорошая погода.", "koi8-r", "KOI8-R"),
        ("# 京都\n\n昨日、京都へ旅行に行きました。", "shift_jis", "Shift_JIS"),
        ("# 北京\n\n昨天我去了北京旅行，天气很好。", "gb18030", "GB18030"),
        ("abc", "utf-16", "UTF-16"),
        ("abc", "utf-32", "UTF-32"),
        ("A note of old Windows", "utf-16-le", "UTF-16-LE"),
        ("---\nencoding: iso-8859-2\n---\nPříliš žluťoučký", "iso8859-2", "iso-8859-2"),
        ("---\ntags: [a]\nCharset: 'euc-jp'\n---\n京", "euc_jp", "euc-jp"),
    ],
)
def test_other_encodings_are_told_and_read(
    tmp_path: Path, text: str, encoding: str, told: str
) -> None:
    data = text.encode(encoding)
    note = _read(tmp_path, data)
    assert isinstance(note, NoteFile)
    assert (note.text, note.encoding, note.data) == (text, told, data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a\0b", "binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        (bytes(range(1, 256)), "binary"),
        (b"\xff\xff", "not_utf8"),
        (bytes(range(128, 256)) * 2, "not_utf8"),
        (b"\xff\xfe\x00", "binary"),
    ],
)
def test_what_cannot_be_read_as_text_is_told(tmp_path: Path, data: bytes, reason: str) -> None:
    assert _read(tmp_path, data) == SkippedFile("n.md", reason)


def test_the_size_guard_is_exact(tmp_path: Path) -> None:
    assert isinstance(_read(tmp_path, b"x" * LIMIT), NoteFile)
    assert _read(tmp_path, b"x" * (LIMIT + 1)) == SkippedFile("n.md", "too_large")


def test_what_is_no_note_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "n.md").touch()
    os.mkfifo(tmp_path / "fifo.md")
    assert read_note(tmp_path, "folder.md", LIMIT) == SkippedFile("folder.md", "not_a_file")
    assert read_note(tmp_path, "fifo.md", LIMIT) == SkippedFile("fifo.md", "not_a_file")
    assert read_note(tmp_path, "none.md", LIMIT) == SkippedFile("none.md", "missing")
    assert read_note(tmp_path, "n.md/x.md", LIMIT) == SkippedFile("n.md/x.md", "missing")
    long_name = "x" * 300 + ".md"  # refused by the system, even for root
    assert read_note(tmp_path, long_name, LIMIT) == SkippedFile(long_name, "unreadable")


def test_a_note_outside_is_never_read(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (tmp_path / "secret.md").write_text("secret")
    (root / "link.md").symlink_to("../secret.md")
    for rel in ("../secret.md", "link.md"):
        with pytest.raises(SecurityViolation):
            read_note(root, rel, LIMIT)


class _Busy(io.FileIO):
    """A file that another program appends to whenever it is read."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        with Path(str(self.path)).open("ab") as other:
            other.write(b"more")
        return data

    path: Path


@pytest.mark.parametrize(("busy_times", "is_read"), [(2, True), (3, False)])
def test_a_note_that_is_being_written_is_read_again_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy_times: int, is_read: bool
) -> None:
    # The write must fall exactly between two looks at the file, which only a stand-in can do.
    (tmp_path / "n.md").write_bytes(b"start")
    opened: list[str] = []

    def open_busy(root: Path, rel: str) -> BinaryIO | _Busy:
        opened.append(rel)
        if len(opened) > busy_times:
            return open_inside(root, rel)
        stream = _Busy(root / rel)
        stream.path = root / rel
        return stream

    monkeypatch.setattr(read_module, "open_inside", open_busy)
    if is_read:
        note = read_note(tmp_path, "n.md", LIMIT)
        assert isinstance(note, NoteFile)
        assert note.text == "startmoremore"
    else:
        with pytest.raises(NoteChanged):
            read_note(tmp_path, "n.md", LIMIT)
    assert len(opened) == 3


class _Short(io.FileIO):
    """A file on a disk that hands out less than it promised."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(2)


def test_a_part_of_a_note_is_never_taken_for_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Network disks do this when the connection drops; none can be had here.
    (tmp_path / "n.md").write_bytes(b"start")
    monkeypatch.setattr(read_module, "open_inside", lambda root, rel: _Short(root / rel))
    with pytest.raises(NoteChanged):
        read_note(tmp_path, "n.md", LIMIT)


def test_content_hash_is_stable() -> None:
    assert content_hash(b"") == "99aa06d3014798d86001c324468d497f"
    assert content_hash(b"a") != content_hash(b"b")
