"""Import LanceDB without the REST client it brings along and we never use.

That client is most of LanceDB's import time, which everybody who searches from a cold command line
would wait for, and 8 MB of every process. Its classes are replaced by empty ones while LanceDB is
imported; whoever imported the real ones before keeps them.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run something of LanceDB's asynchronous side, which takes half the time of the other one.

    All threads that search share one loop: its work is handing over questions and answers.
    """
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="lancedb", daemon=True).start()
    return loop
