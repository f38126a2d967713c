"""obsidian-rag makes an Obsidian vault answerable, on the user's own machine."""

__version__ = "0.1.0"
