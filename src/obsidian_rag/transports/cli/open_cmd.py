"""open: a one-time link to the page, opened in the browser."""

import os
import sys
import webbrowser
from typing import Annotated

import typer

from obsidian_rag.config import load
from obsidian_rag.errors import IndexerFailed
from obsidian_rag.transports.cli.output import JsonFlag, print_data
from obsidian_rag.transports.cli.serve_cmd import ensure_daemon
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.daemon_client import DaemonGone
from obsidian_rag.transports.servers import ServeOptions


def open_page(
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the link instead of opening it")
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Open the page in your browser, signed in

    It starts the daemon if none is running. The link works once, within two minutes.

    Example:  obsidian-rag open
    """
    daemon = ensure_daemon(load(), ServeOptions())
    try:
        answer = daemon.post("/page/link", is_owner=True)
    except DaemonGone:
        raise IndexerFailed("The daemon has stopped.", "Run `obsidian-rag open` again.") from None
    link = str(answer["data"]["url"])
    may_open = not print_only and not json_output and _has_screen()
    is_opened = may_open and webbrowser.open_new_tab(link)
    if json_output:
        print_data({"url": link})
    elif is_opened:
        print(f"Opened {daemon.url} in your browser.")
    else:
        print(link)
        say("Open it in a browser within two minutes; it works once.")
    return 0


def _has_screen() -> bool:
    """Whether there is a desktop; without one a browser opens in the terminal or not at all."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
