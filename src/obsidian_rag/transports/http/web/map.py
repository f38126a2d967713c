"""`GET /page/map`: notes, their places and ties in one answer that is quick to read."""

from collections.abc import Mapping

from starlette.responses import Response

from obsidian_rag.engine import Engine
from obsidian_rag.errors import IndexNotFound


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
    return Response(drawn.encoded(), media_type="application/octet-stream")
