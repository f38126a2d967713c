"""From a vault path to a document id and back, and which paths take part at all.

Threat: a path in the database was written by anyone with access to it. It may try to leave the
vault, name a device, hide in `.obsidian` where it would run as a plugin, or raise one of
LiveSync's own flags. Such a path takes no part, whichever side it comes from.

One name may come in several Unicode forms. A letter with an accent can be one character (composed,
NFC) or two (decomposed, NFD). Obsidian composes names, so for it both are one note. LiveSync's
command line and some disks of macOS keep names as they are, so a database can have a document for
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
# The last character that an id can have: `"h:" + LAST` comes after every chunk.
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
# What Linux and Android can name; macOS and Windows count letters and allow a little more.
_NAME_BYTES = 255
_PATH_BYTES = 2048
_UNWELCOME = re.compile(r'[\\"?<>|*#]')
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|(?:COM|LPT)[1-9¹²³]) *(?:\..*)?", re.IGNORECASE)
_MTIME_BUCKET_MS = 2000


def normalise(path: str) -> str:
    """The spelling of a path that Obsidian uses: composed letters, ordinary spaces."""
    spaced = path.replace("\u00a0", " ").replace("\u202f", " ")
    return unicodedata.normalize("NFC", spaced)


def path_to_id(path: str, *, is_case_sensitive: bool, obfuscation_passphrase: str | None) -> str:
    """The document id of a path. Spellings differ in their ids: `normalise` before, if need be."""
    if path.startswith(OBFUSCATED_PREFIX):
        return path
    name = path if is_case_sensitive else path.lower()
    if not obfuscation_passphrase:
        # CouchDB keeps ids that begin with an underscore for itself.
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
    """Whether the file is cut into small pieces, whatever it holds."""
    return path.endswith(_SPLIT_AS_TEXT)


def takes_part(path: str) -> str | None:
    """The reason why a path takes no part, as the end of a sentence; None when it does."""
    if danger := _danger(path):
        return danger
    if any(part.startswith(".") for part in path.split("/")):
        return "is hidden"
    # A device with case-blind names would take 'RedFlag.md' for the flag.
    lowered = path.lower()
    if lowered in _FLAGS:
        return "is a flag of LiveSync"
    if lowered in _SYSTEM_IDS:
        return "has the name of a document of LiveSync itself"
    if path.startswith(_LOGS):
        return "is a log of LiveSync"
    return None


def warns(path: str) -> str | None:
    """What keeps other systems from writing a path, as the end of a sentence; None if nothing."""
    if _UNWELCOME.search(path):
        return "holds characters that Windows and Android cannot write"
    parts = path.split("/")
    if any(_DEVICE.fullmatch(part) for part in parts):
        return "has a name that Windows keeps for a device"
    if any(part.endswith((" ", ".")) for part in parts):
        return "has a name that ends with a space or a dot, which Windows drops"
    return None


def in_the_way_of(gone: Mapping[str, str], wanted: Iterable[str]) -> list[str]:
    """Of files that are gone, by id, those whose path is a folder of a wanted file, or below one.

    Case does not count: a disk of another device may ignore it.
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
    """The first time that LiveSync takes for later than this one."""
    return (after_ms // _MTIME_BUCKET_MS + 1) * _MTIME_BUCKET_MS


def folders_above(path: str) -> list[str]:
    """The folders that a path lies in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def forms_of(path: str) -> list[str]:
    """The forms of a path that a document may have: as it is, composed, decomposed."""
    composed = normalise(path)
    return list(dict.fromkeys((path, composed, unicodedata.normalize("NFD", composed))))


def in_form_of(path: str, file: str) -> str:
    """A document's path in the form that the file has: that tells the file from a twin."""
    return file if normalise(file) == normalise(path) else path


def assign(
    paths: Sequence[str],
    id_of: Callable[[str], str],
    synced_as: Mapping[str, str],
    live: Sequence[str],
) -> dict[str, str]:
    """The document of each file whose names are one when composed; a twin has none.

    A file stays with the document that it was synced as. Else it goes to the document in its own
    form, then to one in another form; only a file without any gets the composed form. What is left
    over is a twin: it stays where it is, and the user is told.

    `synced_as` are the files that documents were last synced as, `live` the documents that the
    database has besides.
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
    # LiveSync reads what stands before a colon as a prefix; Windows as a drive or a stream.
    if ":" in path:
        return "holds a colon"
    if "\\" in path:
        return "holds a backslash"
    if len(path.encode()) > _PATH_BYTES:
        return "is too long"
    if any(len(part.encode()) > _NAME_BYTES for part in path.split("/")):
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
    """Files and documents that might belong together, the best first."""
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
