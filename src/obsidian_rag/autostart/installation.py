"""Starting the daemon at login: put the operating system's entry in its place, and take it away.

One file of the user's and a few commands of the operating system; nothing needs root. A file
that somebody else wrote is never touched.
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

_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class EntryState:
    """How things are; None where the operating system does not tell."""

    is_installed: bool
    is_current: bool
    is_enabled: bool | None
    is_running: bool | None


def install_entry(entry: Entry) -> None:
    """Write the entry and start the daemon; one that runs by it is started anew.

    Raises:
        ReadOnly: the file is somebody else's, or cannot be written.
        ObsidianRagError: the operating system's program is missing or failed.
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
    _take(entry.start, f"{entry.file} is written, but ", "install")


def remove_entry(entry: Entry) -> list[str] | None:
    """Stop the daemon and remove every trace; what went wrong, or None if there was nothing.

    Raises:
        ReadOnly: the file is somebody else's, or cannot be removed.
        ObsidianRagError: the operating system keeps its entry.
    """
    _refuse_foreign(entry)
    state = observe_entry(entry)
    files = [file for file in (entry.file, *entry.leftovers) if _exists(file)]
    is_known = state.is_enabled or state.is_running
    if not files and not is_known:
        return None
    complaints = []
    if is_known or (None in (state.is_enabled, state.is_running) and state.is_installed):
        complaints += _take(entry.stop, "", "uninstall")
    try:
        for file in files:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise ReadOnly(
            f"{error.filename} cannot be removed ({error.strerror}).", "Check permissions."
        ) from error
    if not complaints:
        _take(entry.forget, "", "uninstall")
    return complaints


def observe_entry(entry: Entry) -> EntryState:
    """What the file says and what the operating system says."""
    found = _read(entry.file)
    is_enabled, is_running = _ask(entry)
    return EntryState(
        is_installed=found is not None,
        is_current=found == entry.text,
        is_enabled=is_enabled if found is not None else bool(is_enabled),
        is_running=is_running,
    )


def _ask(entry: Entry) -> tuple[bool | None, bool | None]:
    """Whether the entry is enabled and whether the daemon runs by it."""
    if shutil.which(entry.program) is None:
        return None, None
    if entry.platform is Platform.LINUX:
        # Without a bus there is no word at all, which is not a no.
        enabled = _run(("systemctl", "--user", "is-enabled", UNIT)).stdout.strip()
        active = _run(("systemctl", "--user", "is-active", UNIT)).stdout.strip()
        return (enabled == "enabled" if enabled else None, active == "active" if active else None)
    if entry.platform is Platform.MACOS:
        told = _run(("launchctl", "print", entry.stop[0].arguments[-1]))
        return told.returncode == 0, told.returncode == 0 and "state = running" in told.stdout
    told = _run(("schtasks", "/Query", "/TN", TASK))
    # The words of the answer are in the user's language.
    return told.returncode == 0, None if told.returncode == 0 else False


def _take(steps: Iterable[Step], so_far: str, verb: str) -> list[str]:
    """Run commands in their order; returns what those said that may fail."""
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
    """What a failing command said."""
    give_up = time.monotonic() + step.patience_s
    while (done := _run(step.arguments)).returncode != 0:
        if time.monotonic() >= give_up:
            words = (done.stderr.strip() or done.stdout.strip()).splitlines()
            return words[0].rstrip(".") if words else f"exit code {done.returncode}"
        time.sleep(_AGAIN_S)
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
