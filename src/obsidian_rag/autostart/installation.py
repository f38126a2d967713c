"""Install and remove the login item that starts the daemon.

This takes one file of the user and a few system commands, and never root. A file that we did not
write is never touched.
"""

import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.autostart.entry import COMMAND_S, Entry, Platform, Step
from obsidian_rag.autostart.launchers import MARK, TASK, UNIT
from obsidian_rag.config import write_atomically
from obsidian_rag.errors import ConfigInvalid, NotFound, ReadOnly

_RETRY_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True)
class EntryState:
    """The state of the entry; None where the system does not report it."""

    is_installed: bool
    is_current: bool
    is_enabled: bool | None
    is_running: bool | None


def install_entry(entry: Entry) -> None:
    """Write the entry and start the daemon, or restart the one that it started before.

    Raises:
        ReadOnly: the file is not ours, or cannot be written.
        ObsidianRagError: the system's program is missing or failed.
    """
    _refuse_foreign(entry)
    if shutil.which(entry.program) is None:
        raise NotFound(
            f"This system has no `{entry.program}`, so nothing was installed.",
            "Have it run `obsidian-rag serve` at login, the way it starts other programs.",
        )
    try:
        for folder in (entry.file.parent, *([entry.log.parent] if entry.log else [])):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(entry.file, entry.text)
    except OSError as error:
        raise ReadOnly(
            f"{entry.file} cannot be written ({error.strerror}).", "Check permissions and disk."
        ) from error
    _run_steps(entry.start, f"{entry.file} is written, but ", "install")


def remove_entry(entry: Entry) -> list[str] | None:
    """Stop the daemon and remove the entry; the commands that failed, or None without an entry.

    Raises:
        ReadOnly: the file is not ours, or cannot be removed.
        ObsidianRagError: the system keeps its entry.
    """
    _refuse_foreign(entry)
    state = observe_entry(entry)
    files = [file for file in (entry.file, *entry.leftovers) if _exists(file)]
    is_known = state.is_enabled or state.is_running
    if not files and not is_known:
        return None
    complaints = []
    if is_known or (None in (state.is_enabled, state.is_running) and state.is_installed):
        complaints += _run_steps(entry.stop, "", "uninstall")
    try:
        for file in files:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise ReadOnly(
            f"{error.filename} cannot be removed ({error.strerror}).", "Check permissions."
        ) from error
    if not complaints:
        _run_steps(entry.forget, "", "uninstall")
    return complaints


def observe_entry(entry: Entry) -> EntryState:
    """The state of the entry, from its file and from the system."""
    found = _read(entry.file)
    is_enabled, is_running = _query_system(entry)
    return EntryState(
        is_installed=found is not None,
        is_current=found == entry.text,
        is_enabled=is_enabled if found is not None else bool(is_enabled),
        is_running=is_running,
    )


def _query_system(entry: Entry) -> tuple[bool | None, bool | None]:
    """Whether the entry is enabled, and whether the daemon that it started is running."""
    if shutil.which(entry.program) is None:
        return None, None
    if entry.platform is Platform.LINUX:
        # Without a bus there is no output at all: that means unknown, not no.
        enabled = _run(("systemctl", "--user", "is-enabled", UNIT)).stdout.strip()
        active = _run(("systemctl", "--user", "is-active", UNIT)).stdout.strip()
        return (enabled == "enabled" if enabled else None, active == "active" if active else None)
    if entry.platform is Platform.MACOS:
        done = _run(("launchctl", "print", entry.stop[0].arguments[-1]))
        return done.returncode == 0, done.returncode == 0 and "state = running" in done.stdout
    done = _run(("schtasks", "/Query", "/TN", TASK))
    # The output is in the user's language, so it cannot be parsed.
    return done.returncode == 0, None if done.returncode == 0 else False


def _run_steps(steps: Iterable[Step], so_far: str, verb: str) -> list[str]:
    """Run commands in order; returns the errors of those that may fail."""
    complaints = []
    for step in steps:
        said = _attempt(step)
        if said is None:
            continue
        what = f"`{' '.join(step.arguments)}` failed: {said}"
        if not step.may_fail:
            raise ConfigInvalid(f"{so_far}{what}.", _advice(step, said, verb))
        complaints.append(f"{what}.")
    return complaints


def _attempt(step: Step) -> str | None:
    """Run a command; its error message if it fails, else None."""
    give_up = time.monotonic() + step.patience_s
    while (done := _run(step.arguments)).returncode != 0:
        if time.monotonic() >= give_up:
            words = (done.stderr.strip() or done.stdout.strip()).splitlines()
            return words[0].rstrip(".") if words else f"exit code {done.returncode}"
        time.sleep(_RETRY_INTERVAL_S)
    return None


def _run(arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(arguments, 1, "", str(error))


def _advice(step: Step, said: str, verb: str) -> str:
    again = f"then run `obsidian-rag service {verb}` again."
    if "connect to bus" in said:
        return (
            "There is no session of systemd for this user here. Log in as this user"
            f" (su and sudo do not start one, and containers have none), {again}"
        )
    if step.arguments[0] == "systemctl":
        return f"`journalctl --user -u {UNIT}` may say more; fix that, {again}"
    return f"Fix that, {again}"


def _refuse_foreign(entry: Entry) -> None:
    found = _read(entry.file)
    if found is not None and MARK not in found:
        raise ReadOnly(
            f"{entry.file} was not written by `obsidian-rag service install`.",
            "Move it away first if you do not need it.",
        )


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _exists(file: Path) -> bool:
    return file.is_symlink() or file.exists()
