"""`GET /page/map`: notes, their places and ties in one answer that is quick to read.

4 bytes        length of the head
the head       JSON, padded with spaces to a multiple of 4
positions      2 numbers of 16 bits per note; `unit` of the head makes them lengths
ties           2 numbers per tie, of 16 bits or, if `is_wide`, 32; relations first, then links,
               then likeness, as many of each as `ties` of the head says
"""

import json
from collections.abc import Mapping

import numpy as np
from starlette.responses import Response

from obsidian_rag.engine import DrawnMap, Engine
from obsidian_rag.errors import IndexNotFound

_STEPS = 65535
_KINDS = 3


def note_map(engine: Engine, asked: Mapping[str, str]) -> Response:
    """All notes, or with `note` the neighbourhood of that note of a `vault`.

    Raises:
        IndexNotFound: nothing is indexed yet.
        NotFound: there is no such note.
    """
    vault_map = engine.live.vault_map if engine.live else None
    if vault_map is None:
        raise IndexNotFound("There is no map here.", "Start the daemon: `obsidian-rag serve`.")
    note = asked.get("note")
    drawn = vault_map.around(note, asked.get("vault")) if note else vault_map.drawn()
    return Response(encoded_map(drawn), media_type="application/octet-stream")


def encoded_map(drawn: DrawnMap) -> bytes:
    """A map as the page reads it."""
    notes, places = drawn.graph.notes, drawn.places
    count = len(notes)
    low = places.min(axis=0) if count else np.zeros(2)
    unit = (float((places - low).max()) if count else 0.0) / _STEPS or 1.0
    is_wide = count > _STEPS
    order = np.argsort(drawn.graph.kinds, kind="stable")
    tags = sorted({tag for note in notes for tag in note.tags})
    number = {tag: at for at, tag in enumerate(tags)}
    vaults = sorted({note.link_id for note in notes})
    head = {
        "version": drawn.version,
        "is_settled": drawn.is_settled,
        "unit": unit,
        "is_wide": is_wide,
        "ties": np.bincount(drawn.graph.kinds, minlength=_KINDS).tolist(),
        "paths": [note.path for note in notes],
        # Most notes are called as their file is.
        "titles": [_title(note.path, note.title) for note in notes],
        "vaults": vaults,
        "vault": [vaults.index(note.link_id) for note in notes] if len(vaults) > 1 else None,
        "tags": tags,
        "tag": [[number[tag] for tag in note.tags] for note in notes],
    }
    text = json.dumps(head, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 4)
    return b"".join(
        (
            len(text).to_bytes(4, "little"),
            text,
            np.rint((places - low) / unit).astype("<u2").tobytes(),
            drawn.graph.pairs[order].astype("<u4" if is_wide else "<u2").tobytes(),
        )
    )


def _title(path: str, title: str) -> str | None:
    name, dot, _ = path.rpartition("/")[2].rpartition(".")
    return None if dot and name == title else title
