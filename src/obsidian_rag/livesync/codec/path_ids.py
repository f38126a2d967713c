"""Vault paths and their document ids, and which paths may be synced.

Threat: anyone with access to the database may have written a path. It may try to leave the vault,
name a device, hide in `.obsidian` where it would run as a plugin, or trigger one of LiveSync's
own flags. Such a path is not synced, in either direction.

A name may have several Unicode forms. A letter with an accent can be one character (composed,
NFC) or two (decomposed, NFD). Obsidian composes names, so it treats both as one note. LiveSync's
command line and some macOS disks keep names as they are, so a database can have a document for
each form, and Linux a file for each.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from obsidian_rag.errors import SecurityViolation
from obsidian_rag.vault import check_relative

CHUNK_PREFIX = "h:"
ENCRYPTED_CHUNK_PREFIX = "h:+"
# The last character in an id: `"h:" + LAST` sorts after every chunk.
LAST = "\U0010ffff"
OBFUSCATED_PREFIX = "f:"
HIDDEN_FILE_PREFIX = "i:"
CUSTOMISATION_PREFIX = "ix:"
PLUGIN_PREFIX = "ps:"

_NOT_OURS = (CHUNK_PREFIX, HIDDEN_FILE_PREFIX, CUSTOMISATION_PREFIX, PLUGIN_PREFIX, "_")
_SYSTEM_IDS = {"obsydian_livesync_version", "syncinfo"}
_TEXT = (".md", ".txt", ".svg", ".html", ".csv", ".css", ".js", ".xml", ".canvas")
_SPLIT_AS_TEXT = (".md", ".txt", ".canvas")
_FLAGS = {"redflag.md", "redflag2.md", "redflag3.md", "flag_rebuild.md", "flag_fetch.md"}
_LOGS = ("livesync_log_", "LIVESYNC_LOG_")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Limits of Linux and Android; macOS and Windows count characters and allow a little more.
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 2048
_UNPORTABLE = re.compile(r'[\\"?<>|*#]')
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|(?:COM|LPT)[1-9¹²³]) *(?:\..*)?", re.IGNORECASE)
_MTIME_BUCKET_MS = 2000


def normalise(path: str) -> str:
    """The spelling of a path that Obsidian uses: composed letters, ordinary spaces."""
    spaced = path.replace("\u00a0", " ").replace("\u202f", " ")
    return unicodedata.normalize("NFC", spaced)


def path_to_id(path: str, *, is_case_sensitive: bool, obfuscation_passphrase: str | None) -> str:
    """The document id of a path. Unicode forms have different ids: call `normalise` first."""
    if path.startswith(OBFUSCATED_PREFIX):
        return path
    name = path if is_case_sensitive else path.lower()
    if not obfuscation_passphrase:
        # CouchDB reserves ids that begin with an underscore.
        return f"/{name}" if name.startswith("_") else name
    prefix, _ = _split_prefix(name)
    digest = _sha256(f"{_sha256(obfuscation_passphrase)}:{name}")
    return f"{prefix}{OBFUSCATED_PREFIX}{digest}"


def is_file_id(doc_id: str) -> bool:
    """Whether a document with this id can be the entry of an ordinary file of a vault."""
    return not doc_id.startswith(_NOT_OURS) and doc_id not in _SYSTEM_IDS


def is_text(path: str) -> bool:
    """Whether LiveSync stores the file as text. Case matters: `A.MD` is binary."""
    return path.endswith(_TEXT)


def splits_as_text(path: str) -> bool:
    """Whether the file is cut into small pieces, whatever its content."""
    return path.endswith(_SPLIT_AS_TEXT)


def takes_part(path: str) -> str | None:
    """Why a path is not synced, as the end of a sentence; None if it is."""
    if danger := _danger(path):
        return danger
    if any(part.startswith(".") for part in path.split("/")):
        return "is hidden"
    # A case-insensitive device would take 'RedFlag.md' for the flag.
    lowered = path.lower()
    if lowered in _FLAGS:
        return "is a flag of LiveSync"
    if lowered in _SYSTEM_IDS:
        return "has the name of a document of LiveSync itself"
    if path.startswith(_LOGS):
        return "is a log of LiveSync"
    return None


def warns(path: str) -> str | None:
    """Why some systems cannot write a path, as the end of a sentence; None if all can."""
    if _UNPORTABLE.search(path):
        return "holds characters that Windows and Android cannot write"
    parts = path.split("/")
    if any(_DEVICE.fullmatch(part) for part in parts):
        return "has a name that Windows keeps for a device"
    if any(part.endswith((" ", ".")) for part in parts):
        return "has a name that ends with a space or a dot, which Windows drops"
    return None


def in_the_way_of(gone: Mapping[str, str], wanted: Iterable[str]) -> list[str]:
    """Which gone files, by id, have a path that is a folder of a wanted file, or is below one.

    Case is ignored: another device's disk may ignore it.
    """
    files = {normalise(path).casefold() for path in wanted}
    folders = {above for path in files for above in folders_above(path)}
    found = []
    for doc_id, path in gone.items():
        place = normalise(path).casefold()
        if place in folders or not files.isdisjoint(folders_above(place)):
            found.append(doc_id)
    return found


def next_mtime(after_ms: int) -> int:
    """The first mtime that LiveSync treats as later than this one."""
    return (after_ms // _MTIME_BUCKET_MS + 1) * _MTIME_BUCKET_MS


def folders_above(path: str) -> list[str]:
    """The folders that contain a path, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def forms_of(path: str) -> list[str]:
    """The Unicode forms of a path: as it is, composed, decomposed."""
    composed = normalise(path)
    return list(dict.fromkeys((path, composed, unicodedata.normalize("NFD", composed))))


def in_form_of(path: str, file: str) -> str:
    """A document's path in the file's Unicode form, which tells the file from a twin."""
    return file if normalise(file) == normalise(path) else path


def assign(
    paths: Sequence[str],
    id_of: Callable[[str], str],
    synced_as: Mapping[str, str],
    live: Sequence[str],
) -> dict[str, str]:
    """Assign documents to files whose names are equal when composed; a twin gets none.

    A file stays with the document that it was synced as. Otherwise it gets the document in its own
    form, then one in another form; only a file without any gets the composed form. A leftover file
    is a twin: it stays where it is, and is reported to the user.

    `synced_as` are the paths that documents were last synced as, `live` the other documents that
    the database has.
    """
    found: dict[str, str] = {}
    for path, doc_id in _proposals(paths, id_of, synced_as, live):
        if path not in found and doc_id not in found.values():
            found[path] = doc_id
    return found


def _split_prefix(name: str) -> tuple[str, str]:
    end = name.find(":") + 1
    return name[:end], name[end:]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _danger(path: str) -> str | None:
    if _CONTROL.search(path):
        return "holds control characters"
    # Before a colon, LiveSync sees a prefix, and Windows a drive or a stream.
    if ":" in path:
        return "holds a colon"
    if "\\" in path:
        return "holds a backslash"
    if len(path.encode()) > _MAX_PATH_BYTES:
        return "is too long"
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in path.split("/")):
        return "has a part that is too long"
    try:
        canonical = check_relative(path)
    except SecurityViolation:
        return "could leave the vault or name a device"
    return None if canonical == path else "has empty parts or dots for parts"


def _proposals(
    paths: Sequence[str],
    id_of: Callable[[str], str],
    synced_as: Mapping[str, str],
    live: Sequence[str],
) -> Iterator[tuple[str, str]]:
    """Possible pairs of file and document, the best first."""
    composed = id_of(normalise(paths[0]))
    for doc_id, path in synced_as.items():
        if path in paths:
            yield path, doc_id
    for doc_id in sorted(synced_as, key=lambda one: one != composed):
        yield from _own_form_first(paths, doc_id, id_of)
    for path in paths:
        if id_of(path) in live:
            yield path, id_of(path)
    for doc_id in (*live, composed):
        yield from _own_form_first(paths, doc_id, id_of)


def _own_form_first(
    paths: Sequence[str], doc_id: str, id_of: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    for path in sorted(paths, key=lambda one: id_of(one) != doc_id):
        yield path, doc_id
