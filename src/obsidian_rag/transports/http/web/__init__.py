"""The page for people: sign-in, the files it is made of, and the data it shows."""

from obsidian_rag.transports.http.web.routes import WebPage
from obsidian_rag.transports.http.web.sessions import Sessions

__all__ = ["Sessions", "WebPage"]
