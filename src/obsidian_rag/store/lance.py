"""LanceDB itself: how it is imported, waited for, and what its failures mean to us.

It is imported without the REST client it brings along and we never use.
That client is most of LanceDB's import time, which everybody who searches from a cold command line
would wait for, and 8 MB of every process. Its classes are replaced by empty ones while LanceDB is
imported; whoever imported the real ones before keeps them.
"""

import asyncio
import contextlib
import errno
import os
import re
import sys
import threading
from collections.abc import Coroutine, Iterator
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from obsidian_rag.errors import (
    IndexCorrupted,
    IndexerFailed,
    IndexIncomplete,
    ObsidianRagError,
    ReadOnly,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

REINDEX = "Run `obsidian-rag reindex` to build it anew."
_FILE_NAME = re.compile(r"[\w-]+\.(?:lance|manifest|txn|arrow|bin|idx)\b")
# "No permission" and "read-only file system".
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_UNUSED = "lance_namespace_urllib3_client"
_importing = threading.Lock()
T = TypeVar("T")


class _Empty(ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: "Sequence[str] | None", target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _UNUSED and not fullname.startswith(f"{_UNUSED}."):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""


def lancedb() -> Any:
    """The `lancedb` module."""
    # A module that another thread is importing is in sys.modules before it is complete.
    with _importing:
        if "lancedb" not in sys.modules:
            # Its log goes to stderr and warns about every table that is about to be created.
            os.environ.setdefault("LANCEDB_LOG", "error")
            finder = _Finder()
            sys.meta_path.insert(0, finder)
            try:
                import lancedb
            finally:
                sys.meta_path.remove(finder)
            return lancedb
        return sys.modules["lancedb"]


async def all_rows(query: Any) -> Any:
    """What a query of the asynchronous side finds, as an Arrow table.

    Before each query LanceDB asks for the schema, to see whether it must add row numbers for
    columns of blobs. We have none, and a question asks up to a dozen times: see docs/decisions.md.
    """
    query._table = None
    return await query.to_arrow()


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run something of LanceDB's asynchronous side, which takes half the time of the other one.

    All threads that search share one loop: its work is handing over questions and answers.
    """
    return begin(work).result()


def begin(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Let it run while the caller does something else."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="lancedb", daemon=True).start()
    return loop


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn LanceDB's failures into ours: the one place where that is done.

    Its core tells damage by any kind of exception, a panic included, and so do values that cannot
    be decoded. Their texts may quote a note, so none of them is passed on.

    Raises:
        IndexCorrupted: files of the table are damaged or missing.
        IndexIncomplete: it has not all columns, because an older program made it.
        IndexerFailed: the disk is full.
        ReadOnly: the disk or the folder may not be written.
    """
    try:
        yield
    except ObsidianRagError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise  # an interrupt, or the end of the process
        raise _told(error, str(error)) from error


def _told(error: BaseException, text: str) -> ObsidianRagError:
    if "No field named" in text:
        return IndexIncomplete(
            "The index was made by another version of obsidian-rag, which cannot answer this.",
            "Run `obsidian-rag sync`, which builds it anew; a daemon does so by itself.",
        )
    if "No space left" in text or "os error 28" in text:
        return IndexerFailed(
            "The disk is full; the index could not be written.",
            "Free some space and run `obsidian-rag sync`: it goes on where it stopped.",
        )
    if any(f"os error {number}" in text for number in _DENIED) or isinstance(
        error, PermissionError
    ):
        return ReadOnly(
            "The index may not be written: its folder or disk is read-only.",
            "Give yourself the right to write to it, then run the command again.",
        )
    file = _FILE_NAME.search(text)
    where = f"{type(error).__name__}{f' in {file[0]}' if file else ''}"
    return IndexCorrupted(f"The index cannot be read ({where}).", REINDEX)


def has_no_word_index(error: IndexCorrupted) -> bool:
    """Whether a question by words failed only because a first run has made no index for it yet."""
    return "INVERTED" in str(error.__cause__)
