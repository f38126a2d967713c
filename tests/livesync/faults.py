"""Things that go wrong in the middle of a sync: a crash, a lost connection, a busy user.

with crashing(at=7): node.sync()      # dies before the seventh change of anything durable
with dropping(at=3, is_heard=True):   # the third request is obeyed, its answer is lost
with meddling(at=5, act=edit):        # somebody edits a file just before the fifth step
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from obsidian_rag.errors import LivesyncUnreachable
from obsidian_rag.livesync import conflicts, disk, transfer
from obsidian_rag.livesync.couchdb.http import CouchServer
from obsidian_rag.store import LivesyncRecords

# What changes the records, the names on the disk, and the vault.
_RECORDS = (
    "put",
    "put_fact",
    "forget",
    "quarantine",
    "release",
    "add_conflict",
    "settle_conflict",
    "add_trash",
    "drop_trash",
    "clear",
)
_NAMES = ("link", "replace", "rename", "unlink", "rmdir", "mkdir")
_VAULT = ("replace_file", "rename_file", "remove_file", "keep_copy", "read_bytes")
_MODULES = (transfer, conflicts, disk)


class Crash(BaseException):
    """The process died here: nothing catches it, and nothing happens after it."""


class _Countdown:
    """Runs `act` before a certain step; a crash goes on for ever."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self._left = at
        self._act = act
        self._is_acting = False

    def step(self) -> None:
        if self._is_acting:  # what happens meanwhile is no step of ours
            return
        self._left -= 1
        if self._left == 0:
            self._is_acting = True
            try:
                self._act()
            except Crash:
                self._left = 1
                raise
            finally:
                self._is_acting = False


def _counted(function: Callable[..., Any], countdown: _Countdown) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        countdown.step()
        return function(*args, **options)

    return call


def _count(patch: pytest.MonkeyPatch, owner: Any, name: str, countdown: _Countdown) -> None:
    patch.setattr(owner, name, _counted(getattr(owner, name), countdown))


@contextmanager
def crashing(at: int) -> Iterator[None]:
    """Die before the n-th step that changes something durable, here or on the server."""

    def die() -> None:
        raise Crash

    countdown = _Countdown(at, die)
    ask = CouchServer.ask

    def asked(server: CouchServer, method: str, path: str, **options: Any) -> Any:
        if method != "GET" and not options.get("is_reading"):
            countdown.step()
        return ask(server, method, path, **options)

    with pytest.MonkeyPatch.context() as patch:
        # One after the other, so that a step has the same number each time.
        patch.setattr(transfer, "_WRITE_THREADS", 1)
        patch.setattr(CouchServer, "ask", asked)
        for name in _RECORDS:
            _count(patch, LivesyncRecords, name, countdown)
        for name in _NAMES:
            _count(patch, os, name, countdown)
        yield


@contextmanager
def dropping(at: int, *, is_heard: bool) -> Iterator[None]:
    """Lose the connection at the n-th request, before or after the server has obeyed it."""
    left = at
    ask = CouchServer.ask

    def asked(server: CouchServer, method: str, path: str, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and not is_heard:
            raise LivesyncUnreachable("The connection was lost.", "Try again.")
        answer = ask(server, method, path, **options)
        if left == 0:
            raise LivesyncUnreachable("The connection was lost.", "Try again.")
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CouchServer, "ask", asked)
        yield


@contextmanager
def meddling(at: int, act: Callable[[], None]) -> Iterator[None]:
    """Let somebody act just before the n-th request, record or change of the vault."""
    countdown = _Countdown(at, act)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transfer, "_WRITE_THREADS", 1)
        _count(patch, CouchServer, "ask", countdown)
        for name in _RECORDS:
            _count(patch, LivesyncRecords, name, countdown)
        for module in _MODULES:
            for name in _VAULT:
                if hasattr(module, name):
                    _count(patch, module, name, countdown)
        yield
