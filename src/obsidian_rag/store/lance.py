"""Imports LanceDB, runs its asynchronous API, and translates its errors.

It is imported without its REST client, which we never use. That client takes most of LanceDB's
import time, which would delay every search from the command line, and 8 MB per process. Its classes
are replaced by empty ones during the import; modules that imported the real ones keep them.
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
    IndexIncomplete,
    ObsidianRagError,
    disk_fault,
    is_denied,
    is_disk_full,
)
from obsidian_rag.store.database import GO_ON

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

REINDEX = "Run `obsidian-rag reindex` to rebuild it."
_FILE_NAME = re.compile(r"[\w-]+\.(?:lance|manifest|txn|arrow|bin|idx)\b")
_SYSTEM_ERROR = re.compile(r"\bos error (\d+)")
_UNUSED_PACKAGE = "lance_namespace_urllib3_client"
_import_lock = threading.Lock()
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
        if fullname != _UNUSED_PACKAGE and not fullname.startswith(f"{_UNUSED_PACKAGE}."):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute: the module is empty."""


def lancedb() -> Any:
    """The `lancedb` module."""
    # A module being imported by another thread is in sys.modules before it is complete.
    with _import_lock:
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
    """The result of an asynchronous query, as an Arrow table.

    Before each query LanceDB fetches the schema, to see whether it must add row numbers for blob
    columns. We have none, and a search runs up to a dozen queries: see docs/decisions.md.
    """
    query._table = None
    return await query.to_arrow()


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a call of LanceDB's asynchronous API, which takes half the time of the synchronous one.

    All search threads share one event loop: it only passes queries and results on.
    """
    return begin(work).result()


def begin(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Start a call in the background."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="lancedb", daemon=True).start()
    return loop


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Translate LanceDB errors into ours, in this one place.

    Its core reports damage by any kind of exception, even a panic, and decoding damaged values
    raises others. Their texts may quote a note, so none is passed on.

    Raises:
        IndexCorrupted: files of the table are damaged or missing.
        IndexIncomplete: columns are missing, because an older version created it.
        IndexerFailed: the disk is full.
        ReadOnly: the disk or the folder is not writable.
    """
    try:
        yield
    except ObsidianRagError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise  # an interrupt, or the end of the process
        raise _to_domain_error(error, str(error)) from error


def _to_domain_error(error: BaseException, text: str) -> ObsidianRagError:
    if "No field named" in text:
        return IndexIncomplete(
            "The index was made by another version of obsidian-rag, which cannot answer this.",
            "Run `obsidian-rag sync`, which rebuilds it; a daemon does so by itself.",
        )
    fault = _system_error(error, text)
    if is_disk_full(fault) or is_denied(fault):
        return disk_fault(fault, "the index", GO_ON)
    file = _FILE_NAME.search(text)
    where = f"{type(error).__name__}{f' in {file[0]}' if file else ''}"
    return IndexCorrupted(f"The index cannot be read ({where}).", REINDEX)


def _system_error(error: BaseException, text: str) -> OSError:
    """The system's error behind one of LanceDB's, which may have it only in its text."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    found = _SYSTEM_ERROR.search(text)
    number = int(found[1]) if found else errno.ENOSPC if "No space left" in text else 0
    return OSError(number, os.strerror(number))


def has_no_word_index(error: IndexCorrupted) -> bool:
    """Whether a word search failed only because a first run has not created its index yet."""
    return "INVERTED" in str(error.__cause__)
