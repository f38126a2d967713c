"""Give a consumer some notes at once, or all, and leave the index as it is.

The next index run finds these files changed all the same, and hands over what is missing then.
"""

from collections.abc import Mapping, Sequence

from obsidian_rag.index.consumer import Delivery, NoteConsumer
from obsidian_rag.index.prepare import sort_in
from obsidian_rag.index.reader import Request, Source, Wanted, read_files
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.vault import Vault, scan_paths

_FILES_AT_ONCE = 512


def hand_over(
    vault: Vault,
    limits: ChunkLimits,
    consumer: NoteConsumer,
    held: Mapping[str, str],
    paths: Sequence[str] | None = None,
) -> list[str] | None:
    """Have the consumer take up the files at `paths`, or all; `held` is what it has of them.

    Tells the paths that were looked at; None if a folder is among the paths: what is in it is for
    an index run to find out.

    Raises:
        NotFound: the vault's folder is not there.
    """
    some = None if paths is None else {*paths, *held}
    found = vault.scan() if some is None else scan_paths(vault.root, vault.rules, some)
    if not found.is_complete:
        return None
    present = [entry.rel_path for entry in found.files if consumer.admits(entry.rel_path)]
    unreadable = tuple(f"{folder}/" for folder in found.unreadable_folders)
    gone = [path for path in held.keys() - set(present) if not path.startswith(unreadable)]
    consumer.take(vault.link_id, Delivery(removed=gone))
    consumer.before_reading(vault, present)
    requests = [Request(path, for_consumer=Wanted(held.get(path))) for path in present]
    source, delivery = Source.of(vault, limits, consumer), Delivery()
    for number, read in enumerate(read_files(source, requests), start=1):
        sort_in(delivery, read, is_wanted=True, is_removal=True)
        if number % _FILES_AT_ONCE == 0 or number == len(requests):
            consumer.take(vault.link_id, delivery)
            delivery = Delivery()
    return [*gone, *present]
