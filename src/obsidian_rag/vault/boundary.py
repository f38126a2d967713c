"""The boundary of a vault: which paths may be opened at all.

Threat: a path arrives from an agent, a web page, a synced config or a note's own text and names
something outside the vault (`../`, absolute, drive, UNC, percent-encoded, look-alike dots), or a
device that blocks or does harm (a FIFO, /dev/…, on Windows CON), or it looks harmless and runs
through a symlink, perhaps one created between our check and our open.

So there are two checks. `check_relative` checks the text of a path without touching the disk.
`resolve` follows every symlink and compares with the real root. Opening then walks from the real
root one folder at a time and follows no link, so what is opened is what was checked.
"""

import contextlib
import errno
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from obsidian_rag.errors import SecurityViolation

_WINDOWS = os.name == "nt"
_WALKS_BY_DESCRIPTOR = os.open in os.supports_dir_fd
_USE_INSIDE_PATH = "Use a path inside the vault, such as 'Journal/2024-01-15.md'."
_DECODE_ROUNDS = 3
_SEPARATORS = re.compile(r"[/\\]")
_DRIVE = re.compile(r"[A-Za-z]:(?:$|[/\\])")
# Tab and newline are legal in POSIX names and harmless here; the rest can control a terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[1-9¹²³])", re.IGNORECASE)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
# Without O_NONBLOCK opening a FIFO would wait for its other end.
READ_FLAGS = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_ATIME = getattr(os, "O_NOATIME", 0)
# A cloud file whose content is not on this disk: reading it would start a download.
_PLACEHOLDER_BITS = {
    "win32": ("st_file_attributes", 0x0040_0000 | 0x1000),
    "darwin": ("st_flags", 0x4000_0000),
}.get(sys.platform)


class _LinkOnTheWay(Exception):
    """`_walk` does not follow links and found one."""


class NotANote(OSError):
    """A folder, FIFO, device, socket or cloud placeholder stands where a note was expected."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EINVAL, reason)
        self.reason = reason


def has_control_characters(text: str) -> bool:
    """Whether a text has characters that paths and names cannot have, such as NUL."""
    return _CONTROL.search(text) is not None


def check_relative(rel: str) -> str:
    """The canonical form (posix, no empty or '.' parts) of a path inside a vault.

    Raises:
        SecurityViolation: the path could mean something outside, or a device.
    """
    if has_control_characters(rel):
        raise _violation(rel, "contains characters that a path of a note cannot have")
    separated = rel.replace("\\", "/") if _WINDOWS else rel
    parts = [part for part in separated.split("/") if part not in ("", ".")]
    canonical = "/".join(parts)
    # Both spellings: './C:' and './%2f' are recognised only without their './'.
    for form in (*_percent_decode(rel), *_percent_decode(canonical)):
        if form[:1] in ("/", "\\") or _DRIVE.match(form) or "\0" in form:
            raise _violation(rel, "is an absolute path")
        if _has_parent_part(form) or _has_parent_part(unicodedata.normalize("NFKC", form)):
            raise _violation(rel, "leaves the vault")
    if not parts:
        raise _violation(rel, "does not name a note")
    if any(_is_reserved(part) for part in parts):
        raise _violation(rel, "uses a name reserved by the system")
    return canonical


def is_harmless(name: str) -> bool:
    """A fast check that passes most safe names; if false, use `check_relative` to decide."""
    if "%" in name or "\\" in name or len(name) < 3 or not name.isprintable() or _WINDOWS:
        return False
    return ".." not in (name if name.isascii() else unicodedata.normalize("NFKC", name))


def resolve(root: Path, rel: str) -> Path:
    """The real path of `rel`, existing or not, with every symlink followed.

    Raises:
        SecurityViolation: the real path is outside the root, or `rel` is not acceptable.
    """
    return Path(_resolve_paths(root, rel)[1])


def relative_to_root(root: Path, path: str) -> str:
    """The canonical relative form of `path`, given relative or as an absolute path in `root`.

    Raises:
        SecurityViolation: it is not in the vault.
    """
    given = Path(path)
    if not given.is_absolute() or _CONTROL.search(path):
        return check_relative(path)
    absolute_root = Path(os.path.abspath(root))  # noqa: PTH100  (keeps symlinks)
    real_root = Path(os.path.realpath(root))
    # The path may run through a link that the root does not (/tmp on macOS).
    real_given = Path(os.path.realpath(given.parent), given.name)
    for start, place in (
        (absolute_root, given),
        (real_root, given),
        (real_root, real_given),
    ):
        if place.is_relative_to(start):
            return check_relative(place.relative_to(start).as_posix())
    raise _violation(path, "is not in the vault")


@contextlib.contextmanager
def folder_of(root: Path, rel: str, *, create: bool = False) -> Iterator[tuple[int | None, str]]:
    """The real folder of `rel`, opened, and the name of `rel` in it.

    Pass both to `os.open(name, …, dir_fd=…)`. Where the system does not support `dir_fd` (Windows)
    the descriptor is None and the name is the full real path.
    """
    if not _WALKS_BY_DESCRIPTOR:
        real = _resolve_paths(root, rel)[1]
        if create:
            Path(real).parent.mkdir(parents=True, exist_ok=True)
        yield None, real
        return
    # Most paths contain no link; then the walk itself proves that they stay inside.
    opened = _walk(os.fspath(root), check_relative(rel), create)
    if opened is None:
        real_root, real = _resolve_paths(root, rel)
        if real == real_root:
            raise NotANote("not_a_file")
        opened = _walk(real_root, real[len(real_root) :].lstrip("/"), create)
    if opened is None:
        raise _violation(rel, "has a symlink in it that cannot be followed safely")
    descriptor, name = opened
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def open_inside(root: Path, rel: str) -> BinaryIO:
    """Open the regular file at `rel` for reading; never blocks.

    Raises:
        SecurityViolation: it is outside, or became a symlink while being opened.
        NotANote: it is not a regular file, or its content is not on this disk.
        OSError: it is missing or unreadable.
    """
    with folder_of(root, rel) as (folder, name):
        before = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(before.st_mode):
            raise _violation(rel, "is a symlink that cannot be followed safely")
        # Before opening: some devices act on being opened.
        _check_is_note(before)
        descriptor = _open_without_atime(name, folder)
        try:
            _check_is_note(os.fstat(descriptor))
            if folder is None and not _is_unchanged(root, rel, descriptor):
                raise _violation(rel, "was replaced while being opened")
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise


def is_within(real_root: str, real: str) -> bool:
    """Whether `real` is `real_root` or below it."""
    inside, outer = os.path.normcase(real), os.path.normcase(real_root)
    return inside == outer or inside.startswith(outer.rstrip(os.sep) + os.sep)


def is_placeholder(status: os.stat_result) -> bool:
    """Whether a cloud service downloads the content only when the file is read."""
    if _PLACEHOLDER_BITS is None:
        return False
    attribute, bits = _PLACEHOLDER_BITS
    return bool(getattr(status, attribute, 0) & bits)


def _violation(path: str, why: str) -> SecurityViolation:
    return SecurityViolation(f"The path {path!r} {why}.", _USE_INSIDE_PATH)


def _percent_decode(rel: str) -> Iterator[str]:
    yield rel
    form = rel
    for _ in range(_DECODE_ROUNDS):
        decoded = unquote(form)
        if decoded == form:
            return
        form = decoded
        yield form


def _has_parent_part(form: str) -> bool:
    # Windows drops spaces around a name's end: '.. ' climbs there like '..'.
    return ".." in form and any(part.strip(" ") == ".." for part in _SEPARATORS.split(form))


def _is_reserved(part: str) -> bool:
    if part == "~":
        return True
    # Only Windows reserves names such as `con`.
    if not _WINDOWS:
        return False
    stem = part.split(".", 1)[0].rstrip(" ")
    return ":" in part or part[-1] in " ." or _DEVICE.fullmatch(stem) is not None


def _resolve_paths(root: Path, rel: str) -> tuple[str, str]:
    real_root = os.path.realpath(root)
    real = os.path.realpath(os.path.join(real_root, check_relative(rel)))  # noqa: PTH118
    if not is_within(real_root, real):
        raise _violation(rel, "leads out of the vault through a symlink")
    return real_root, real


def _walk(top: str, rel: str, create: bool) -> tuple[int, str] | None:
    """Open the folder of `rel` step by step from `top`; None if the path contains a symlink."""
    *folders, name = rel.split("/")
    descriptor = os.open(top, _FOLDER_FLAGS)
    try:
        for folder in folders:
            below = _enter(descriptor, folder, create)
            os.close(descriptor)
            descriptor = below
        if _is_link(name, descriptor):
            raise _LinkOnTheWay
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, _LinkOnTheWay):
            return None
        raise
    return descriptor, name


def _enter(descriptor: int, folder: str, create: bool) -> int:
    is_new = False
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, dir_fd=descriptor)
            is_new = True
    try:
        entered = os.open(folder, _FOLDER_FLAGS | _NO_FOLLOW, dir_fd=descriptor)
        if is_new:
            os.fchmod(entered, mode_in_folder(os.fstat(descriptor), 0o777))
        return entered
    except OSError:
        if _is_link(folder, descriptor):
            raise _LinkOnTheWay from None
        raise


def mode_in_folder(folder: os.stat_result, most: int) -> int:
    """The mode of a new file or folder in the vault: other users get the folder's own rights.

    Our umask does not apply here: it is for the data folder, which is private.
    """
    return stat.S_IMODE(folder.st_mode) & most & ~stat.S_IWOTH | stat.S_IRUSR | stat.S_IWUSR


def _is_link(name: str, folder: int) -> bool:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISLNK(status.st_mode)


def _check_is_note(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotANote("not_a_file")
    if is_placeholder(status):
        raise NotANote("cloud_placeholder")


def _open_without_atime(name: str, folder: int | None) -> int:
    # Only the owner of a file may use O_NOATIME; others can still read it.
    if _NO_ATIME:
        with contextlib.suppress(PermissionError):
            return os.open(name, READ_FLAGS | _NO_ATIME, dir_fd=folder)
    return os.open(name, READ_FLAGS, dir_fd=folder)


def _is_unchanged(root: Path, rel: str, descriptor: int) -> bool:
    return os.path.samestat(os.fstat(descriptor), resolve(root, rel).stat())
