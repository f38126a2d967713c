"""The index as it is on disk now: another process may have written it, or replaced its files."""

import contextlib

from obsidian_rag.embed import SERVED
from obsidian_rag.errors import IndexNotFound, ObsidianRagError
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.run import FINGERPRINT, INDEX_VERSION, MAINTAINED


def index_version(place: IndexPlace) -> str:
    """A name for the present state of the index; it changes when the index does."""
    return place.database.get(INDEX_VERSION) or "0"


def take_up_changes(place: IndexPlace) -> None:
    """See what another process has written since the last question.

    Raises:
        IndexNotFound: there is no index, or none any more.
    """
    place.follow_database()
    if not place.chunks.exists() or place.database.get(FINGERPRINT) is None:
        raise no_index()
    # A sweep changes no row, but what the words of the rows count for.
    version = f"{index_version(place)} {place.database.get(MAINTAINED)}"
    if place.seen_version != version:
        place.chunks.close()
        place.seen_version = version


def reopen(place: IndexPlace) -> None:
    """Before a run: another process may have written the index since our last one."""
    # A kept table extends what it was when it was opened: if another process has made the
    # table anew meanwhile, that would refer to files that are gone.
    place.chunks.close()
    place.follow_database()


def warm_up(place: IndexPlace) -> None:
    """Load what the first run would load; a trouble is that run's to tell."""
    reopen(place)
    with contextlib.suppress(ObsidianRagError):
        if place.chunks.folder is not None:
            place.chunks.count()
    with contextlib.suppress(ObsidianRagError):
        if place.embedder.provider not in SERVED:
            place.embedder.embed_query("ready")


def no_index() -> IndexNotFound:
    """What to say where there is nothing to answer from."""
    return IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
