"""serve: run the daemon, start one in the background, or stop it."""

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import Busy, IndexerFailed, InvalidArgument
from obsidian_rag.transports.cli.output import JsonFlag, print_done
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.daemon_client import (
    DaemonGone,
    RunningDaemon,
    find_daemon,
    is_locked,
    usable_daemon,
)
from obsidian_rag.transports.servers import ServeOptions, serve_http

if TYPE_CHECKING:
    from pathlib import Path

_START_TIMEOUT_S = 30.0
_STOP_EXTRA_S = 15.0
_POLL_S = 0.05


def serve(
    detach: Annotated[
        bool, typer.Option("--detach", help="Start in the background and print the address")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the running daemon")] = False,
    idle_exit: Annotated[
        float | None,
        typer.Option("--idle-exit", min=0, help="Stop after this many seconds without a request"),
    ] = None,
    parent_pid: Annotated[
        int | None, typer.Option("--parent-pid", min=1, help="Stop when this process is gone")
    ] = None,
    while_used: Annotated[
        bool,
        typer.Option("--while-used", help="Stop ten minutes after the last agent or page is gone"),
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Run the daemon: watch the vault, and answer commands and agents

    It listens on 127.0.0.1 only. While it runs, edits become searchable at once, and all
    other commands use it.

    Example:  obsidian-rag serve --detach
    """
    if detach and stop:
        raise InvalidArgument("--detach and --stop exclude each other.", "Choose one.")
    config = load()
    if stop:
        return _stop(config, json_output)
    options = ServeOptions(idle_exit, parent_pid, while_used)
    if not detach:
        daemon = find_daemon(config.home)
        if daemon is not None and daemon.while_used and not while_used:
            _end(config)  # the user's own daemon replaces an agent's
        return serve_http(config, options)
    before = find_daemon(config.home)
    daemon = ensure_daemon(config, options)
    address = {"url": daemon.url, "port": daemon.port, "pid": daemon.pid}
    line = f"{daemon.url}  (process {daemon.pid}; `obsidian-rag serve --stop` ends it)"
    return print_done({**address, "started": daemon != before}, line, json_output)


def ensure_daemon(config: Config, options: ServeOptions) -> RunningDaemon:
    """Return the running daemon if it has these settings, else start one and wait for it.

    Raises:
        Busy: the new daemon is for an agent, and the user's own has other settings.
        IndexerFailed: it did not start.
    """
    roots = config.vault_roots if config.has_vault else ()
    daemon, differs = usable_daemon(config)
    if daemon is not None:
        differs = _reason_to_restart(config, daemon, options)
        if not differs:
            return daemon
    if differs:
        if options.while_used:
            raise Busy(differs, "Restart it yourself.")
        say(differs)
        _end(config)
    for root in roots:
        if not root.is_dir():
            say(f"The vault {root} is missing; the daemon waits for it.")
    return _start(config, options)


def _start(config: Config, options: ServeOptions) -> RunningDaemon:
    config.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = config.logs / "serve.log"
    child: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        if (daemon := find_daemon(config.home)) is not None:
            return daemon
        # While the lock is held, another daemon is starting or stopping: wait for it.
        if not is_locked(config.home):
            if child is None:
                child = _spawn(log, options)
            elif child.poll() is not None:
                break
        time.sleep(_POLL_S)
    tail = log.read_text(encoding="utf-8", errors="replace").strip()[-600:]
    raise IndexerFailed(
        f"The daemon did not start. Its last output:\n{tail or '(none)'}",
        f"Run `obsidian-rag serve` to see more; the log is {log}.",
    )


def _reason_to_restart(config: Config, daemon: RunningDaemon, options: ServeOptions) -> str:
    """Why a daemon with our settings must restart, or ""; never for `while_used`."""
    if options.while_used:
        return ""
    if changed := config.restart_needed(daemon.started_with):
        return f"The daemon restarts to use the new {', '.join(changed)}."
    return "The daemon was started for an agent; it restarts to stay." if daemon.while_used else ""


def _spawn(log: "Path", options: ServeOptions) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "obsidian_rag", "serve"]
    if options.idle_exit_s is not None:
        command += ["--idle-exit", str(options.idle_exit_s)]
    if options.while_used:
        command.append("--while-used")
    if options.parent_pid is not None:
        command += ["--parent-pid", str(options.parent_pid)]
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
    with log.open("wb") as stream:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=sys.platform != "win32",
            creationflags=flags,
        )


def _stop(config: Config, json_output: bool) -> int:
    daemon = _end(config)
    stopped = {"stopped": daemon is not None, "pid": daemon.pid if daemon else None}
    line = f"Stopped process {daemon.pid}." if daemon else "No daemon was running."
    return print_done(stopped, line, json_output)


def _end(config: Config) -> RunningDaemon | None:
    """Stop the daemon, wait until it is gone, and return it."""
    daemon = find_daemon(config.home)
    if daemon is not None:
        try:
            daemon.post("/shutdown")
        except DaemonGone:
            daemon = None
    deadline = time.monotonic() + config.settings.server.shutdown_wait_s + _STOP_EXTRA_S
    while is_locked(config.home):
        if time.monotonic() > deadline:
            raise IndexerFailed(
                "The daemon is still stopping.", "Look at logs/daemon.log, or end its process."
            )
        time.sleep(_POLL_S)
    return daemon
