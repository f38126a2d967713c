"""The question before notes are sent to an embedder outside this machine for the first time."""

import sys

import typer

from obsidian_rag.config import load
from obsidian_rag.transports.cli.output import open_engine
from obsidian_rag.transports.cli.streams import say


def confirm_sending(mode: str, yes: bool) -> None:
    """Tell what a run would send, and ask; `yes` is the answer of a script.

    Raises:
        ConfigInvalid: there is nobody to ask, or the answer was no.
    """
    if load().settings.security.local_only:
        return
    with open_engine() as opened:
        estimate = opened.sending.estimate(mode)
        if estimate is None:
            return
        if not yes and not sys.stdin.isatty():
            raise estimate.refusal(mode)
        say(estimate.text)
        if not yes and not typer.confirm("Private passages stay here. Send the rest?", err=True):
            raise estimate.refusal(mode)
        opened.sending.agree()
