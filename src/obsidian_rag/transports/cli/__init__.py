"""The command line. Commands load what they need when they run, so that --help is quick."""

import os
import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line; returns the exit code."""
    _use_utf8()
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:  # until there is something to tidy up, Ctrl-C ends it without a word
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from obsidian_rag.transports.cli.app import run

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _use_utf8() -> None:
    """Start anew in UTF-8 mode if file names and arguments would be read as something else.

    A forced C locale or an old one such as Latin-1; the names of notes are UTF-8 in any of them.
    """
    if sys.platform == "win32" or sys.flags.utf8_mode or sys.getfilesystemencoding() == "utf-8":
        return
    os.environ["PYTHONUTF8"] = "1"  # for the processes that we start
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
