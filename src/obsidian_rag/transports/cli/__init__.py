"""The command line. Commands load what they need when they run, so that --help is quick."""

from obsidian_rag.transports.cli.app import main

__all__ = ["main"]
