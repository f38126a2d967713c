"""The command line. Help and commands that the daemon answers skip the heavy imports."""

import os
import signal
import sys

from obsidian_rag.transports.cli.instant import answer_at_once

__all__ = ["main"]


def main() -> int:
    """Run the command line; returns the exit code."""
    _use_utf8()
    try:
        if (code := answer_at_once(sys.argv[1:])) is not None:
            return code
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:  # until there is something to clean up, Ctrl-C exits silently
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    if sys.argv[1:2] == ["mcp"]:
        from obsidian_rag.transports.servers import mcp_at_once  # noqa: PLC0415  (the bridge)

        if (code := mcp_at_once(sys.argv[2:])) is not None:
            return code
    from obsidian_rag.transports.cli.app import run

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _use_utf8() -> None:
    """Restart Python in UTF-8 mode if it would decode file names and arguments differently.

    That happens with a forced C locale or one such as Latin-1; note names are always UTF-8.
    """
    if sys.platform == "win32" or sys.flags.utf8_mode or sys.getfilesystemencoding() == "utf-8":
        return
    os.environ["PYTHONUTF8"] = "1"  # for the processes that we start
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
