"""The web page: sign-in, its static files, and its data."""

from obsidian_rag.transports.http.web.routes import WebPage
from obsidian_rag.transports.http.web.sessions import Sessions

__all__ = ["Sessions", "WebPage"]
