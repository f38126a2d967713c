"""The login item of each platform: one file, and the commands to install and remove it.

Nothing is read or changed here; `installation` does that, and `launchers` has the file contents.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from obsidian_rag.autostart.launchers import (
    LABEL,
    TASK,
    UNIT,
    Launch,
    plist_text,
    task_xml,
    unit_text,
)
from obsidian_rag.config import ENV_PREFIX, Config, data_home, load
from obsidian_rag.errors import InvalidArgument

# Some commands stop the old daemon, which may finish its job first.
COMMAND_S = 120.0
_PASSED_VARIABLES = (ENV_PREFIX + "HOME", ENV_PREFIX + "CONFIG")


class Platform(StrEnum):
    """An operating system that can start the daemon at login."""

    LINUX = "linux"
    MACOS = "macos"
    WINDOWS = "windows"


@dataclass(frozen=True, slots=True)
class Machine:
    """The user and the Python that the daemon is started with."""

    platform: Platform
    python: Path
    user_id: int
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Step:
    """A system command; if it fails, it is retried for `patience_s`."""

    arguments: tuple[str, ...]
    may_fail: bool = False
    patience_s: float = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """What starts the daemon at login on one platform."""

    platform: Platform
    file: Path
    text: str
    command: tuple[str, ...]
    log: Path | None
    start: tuple[Step, ...]
    stop: tuple[Step, ...]
    forget: tuple[Step, ...] = ()
    leftovers: tuple[Path, ...] = ()

    @property
    def program(self) -> str:
        """The system's program that manages the entry."""
        return self.start[0].arguments[0]

    @property
    def install_commands(self) -> list[tuple[str, ...]]:
        """The commands run after the file is written."""
        return [step.arguments for step in self.start]

    @property
    def remove_commands(self) -> list[tuple[str, ...]]:
        """The commands run before and after the file is removed."""
        return [step.arguments for step in (*self.stop, *self.forget)]


def platform_of(name: str) -> Platform:
    """The platform of this name, ours or Python's.

    Raises:
        InvalidArgument: the platform is not supported.
    """
    known = {**Platform.__members__, "DARWIN": Platform.MACOS, "WIN32": Platform.WINDOWS}
    if name.upper() not in known:
        raise InvalidArgument(
            f"Autostart does not support {name}.",
            "Let your system start `obsidian-rag serve` when you log in.",
        )
    return known[name.upper()]


def daemon_config(environ: Mapping[str, str]) -> Config:
    """The settings as the daemon will see them, without the other variables of this shell."""
    others = {name: text for name, text in environ.items() if not name.startswith(ENV_PREFIX)}
    return load(environ={**others, **_passed_variables(environ)})


def unseen_settings(environ: Mapping[str, str]) -> list[str]:
    """Variables with settings that the daemon will not see."""
    return sorted(n for n in environ if n.startswith(ENV_PREFIX) and n not in _PASSED_VARIABLES)


def entry_for(machine: Machine) -> Entry:
    """The entry for this machine; nothing is written or run."""
    home = data_home(machine.environ)
    python = machine.python
    if machine.platform is Platform.WINDOWS:
        python = _find_windowless(python)
    log = home / "logs" / "autostart.log"
    launch = Launch(str(python), _passed_variables(machine.environ), str(log))
    if machine.platform is Platform.LINUX:
        return _systemd_entry(launch, machine.environ)
    if machine.platform is Platform.MACOS:
        return _launchd_entry(launch, log, machine.user_id)
    return _task_entry(launch, log, home, machine.environ)


def _systemd_entry(launch: Launch, environ: Mapping[str, str]) -> Entry:
    chosen = Path(environ.get("XDG_CONFIG_HOME", ""))
    folder = chosen if chosen.is_absolute() else Path("~/.config").expanduser()
    units = folder / "systemd" / "user"
    systemctl = ("systemctl", "--user")
    return Entry(
        platform=Platform.LINUX,
        file=units / UNIT,
        text=unit_text(launch),
        command=launch.command,
        log=None,
        start=(
            Step((*systemctl, "daemon-reload")),
            # systemd does not start a unit that failed too often until its counter is reset.
            Step((*systemctl, "reset-failed", UNIT), may_fail=True),
            Step((*systemctl, "try-restart", UNIT)),
            Step((*systemctl, "enable", "--now", UNIT)),
        ),
        stop=(Step((*systemctl, "disable", "--now", UNIT), may_fail=True),),
        forget=(Step((*systemctl, "daemon-reload"), may_fail=True),),
        leftovers=(units / "default.target.wants" / UNIT,),
    )


def _launchd_entry(launch: Launch, log: Path, user_id: int) -> Entry:
    file = Path("~/Library/LaunchAgents").expanduser() / f"{LABEL}.plist"
    domain = f"gui/{user_id}"
    unload = Step(("launchctl", "bootout", f"{domain}/{LABEL}"), may_fail=True)
    return Entry(
        platform=Platform.MACOS,
        file=file,
        text=plist_text(launch),
        command=launch.command,
        log=log,
        start=(
            unload,
            Step(("launchctl", "enable", f"{domain}/{LABEL}")),
            # Unloading continues after `bootout` returns; until it ends, this fails with 5 or 37.
            Step(("launchctl", "bootstrap", domain, str(file)), patience_s=COMMAND_S),
        ),
        stop=(unload,),
        leftovers=(log,),
    )


def _task_entry(launch: Launch, log: Path, home: Path, environ: Mapping[str, str]) -> Entry:
    file = home / "autostart.xml"
    user = "\\".join(environ[name] for name in ("USERDOMAIN", "USERNAME") if name in environ)
    name = ("/TN", TASK)
    return Entry(
        platform=Platform.WINDOWS,
        file=file,
        text=task_xml(launch, user),
        command=launch.command,
        log=log,
        start=(
            Step(("schtasks", "/End", *name), may_fail=True),
            Step(("schtasks", "/Create", *name, "/XML", str(file), "/F")),
            Step(("schtasks", "/Run", *name)),
        ),
        stop=(
            Step(("schtasks", "/End", *name), may_fail=True),
            Step(("schtasks", "/Delete", *name, "/F")),
        ),
        leftovers=(log,),
    )


def _passed_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that locate our files, with absolute paths."""
    found = {name: environ[name] for name in _PASSED_VARIABLES if environ.get(name)}
    return {name: str(Path(text).expanduser().absolute()) for name, text in found.items()}


def _find_windowless(python: Path) -> Path:
    """The `pythonw.exe` beside this Python, which opens no console window, if it exists."""
    beside = python.with_name("pythonw.exe")
    with contextlib.suppress(OSError):
        if beside.is_file():
            return beside
    return python
