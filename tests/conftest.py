"""Every test gets its own home, data folder and environment; a few things most tests need."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from hypothesis import settings
from tests.folders import write_config, write_notes
from tests.livesync.databases import far_remote, pouch, proxy, remote
from tests.livesync.keyrings import memory_keyring, no_keyring
from tests.transports.command_line import Done, in_process
from tests.waiting import PATIENCE_S, until

from obsidian_rag import config
from obsidian_rag.engine import Engine
from obsidian_rag.transports.daemon_client import find_daemon

# One server of LiveSync in a process is enough for all rooms, so its fixture stands here only.
__all__ = ["far_remote", "memory_keyring", "no_keyring", "pouch", "proxy", "remote"]

_LOUD = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")
_PLACES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "APPDATA")

# Where the environment forbids to keep bytecode, every process that a test starts would compile
# all of ours that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests write many small files, and wait for the disk longer than they work. In memory they do not,
# where there is enough of it and its files may be run.
_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 4 * 1024**3


def _is_enough(place: os.statvfs_result) -> bool:
    return place.f_bavail * place.f_frsize >= _ENOUGH_BYTES and not place.f_flag & os.ST_NOEXEC


if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and _is_enough(os.statvfs(_MEMORY)):
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)

# A test must not fail because others keep the machine busy; `pytest-timeout` ends what hangs.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_xdist_auto_num_workers() -> int:
    """Two workers per core, because tests wait half of their time: for a disk, a timer, a child."""
    return 2 * (os.cpu_count() or 1)


@pytest.fixture(scope="session", autouse=True)
def no_process_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever tests start has ended when the last of them has."""
    yield
    ours = psutil.Process().children(recursive=True)
    detached = _processes_of(tmp_path_factory.getbasetemp())
    _, left = psutil.wait_procs([*ours, *detached], timeout=PATIENCE_S)
    assert [" ".join(one.cmdline()) for one in left] == []


def _processes_of(folder: Path) -> Iterator[psutil.Process]:
    """Those of ours whose data folder is below this one, also if no child of this process."""
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            place = one.environ().get("OBSIDIAN_RAG_HOME", "")
            if place and Path(place).is_relative_to(folder) and "obsidian_rag" in one.cmdline():
                yield one


@pytest.fixture
def surroundings() -> Iterator[None]:
    """What a test does to the environment and the folder of this process ends with it.

    Commands that run in this process do such things, which is right in a process of their own.
    """
    environment, folder = dict(os.environ), Path.cwd()
    yield
    for name in {*os.environ, *environment} - {"PYTEST_CURRENT_TEST"}:
        if name not in environment:
            del os.environ[name]
        elif os.environ.get(name) != environment[name]:
            os.environ[name] = environment[name]
    os.chdir(folder)


@pytest.fixture(autouse=True)
def home(surroundings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of this test, which does not exist yet."""
    for name in (*_LOUD, *_PLACES, *(n for n in os.environ if n.startswith("OBSIDIAN_RAG_"))):
        monkeypatch.delenv(name, raising=False)
    os.umask(0o077)  # as every process of ours begins
    # Neither folder is made: tests use tmp_path itself as a vault too.
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def daemon_ends(home: Path) -> Iterator[None]:
    """A daemon that the test's commands start in the background ends with the test."""
    yield
    if (daemon := find_daemon(home)) is not None:
        daemon.post("/shutdown")
        until(lambda: not psutil.pid_exists(daemon.pid), "the end of the daemon")


@pytest.fixture
def make_vault(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Write notes (relative path: text or bytes) below one folder, and return it."""

    def make(notes: Mapping[str, str | bytes]) -> Path:
        root = tmp_path / "vault"
        write_notes(root, notes)
        return root

    return make


@pytest.fixture
def configure(home: Path) -> Callable[[Path, Mapping[str, object]], None]:
    """Write config.json for a vault, with dotted settings; the hash embedder unless told."""

    def write(vault: Path, settings: Mapping[str, object]) -> None:
        write_config(home, vault, settings)

    return write


@pytest.fixture
def engine(
    configure: Callable[[Path, Mapping[str, object]], None],
) -> Iterator[Callable[..., Engine]]:
    """Make an engine: `engine(vault)` or `engine(vault, {"embedding.provider": "ollama"})`."""
    made: list[Engine] = []

    def make(vault: Path, settings: Mapping[str, object] | None = None) -> Engine:
        configure(vault, settings or {})
        made.append(Engine(config.load()))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run a command in this process: `cli("sync", "--json")`."""

    def call(*arguments: str) -> Done:
        return in_process(arguments, capsys, monkeypatch)

    return call
