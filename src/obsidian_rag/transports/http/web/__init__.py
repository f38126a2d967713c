"""The web page: sign-in, its static files, and its data."""

from obsidian_rag.transports.http.web.routes import WebPage

__all__ = ["WebPage"]
