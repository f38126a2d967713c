"""One name in several Unicode forms: which file is which document. No I/O.

A letter with an accent can be one character (composed, NFC) or two (decomposed, NFD). Obsidian
composes names, so for it both are one note. LiveSync's command line and some disks of macOS keep
names as they are, so a database can have a document for each form, and Linux a file for each.

A file stays with the document that it was synced as. Else it goes to the document in its own form,
then to one in another form; only a file without any gets the composed form. What is left over is a
twin: it stays where it is, and the user is told.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence

from obsidian_rag.livesync.path_ids import normalise


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

    `synced_as` are the files that documents were last synced as, `live` the documents that the
    database has besides.
    """
    found: dict[str, str] = {}
    for path, doc_id in _proposals(paths, id_of, synced_as, live):
        if path not in found and doc_id not in found.values():
            found[path] = doc_id
    return found


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
