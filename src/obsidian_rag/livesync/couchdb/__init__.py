"""A CouchDB client: requests, answers, authentication, and the feed of changes."""

from obsidian_rag.livesync.couchdb.answers import Change
from obsidian_rag.livesync.couchdb.couch import BulkRow, Couch, Document
from obsidian_rag.livesync.couchdb.remote import Jwt, Remote

__all__ = ["BulkRow", "Change", "Couch", "Document", "Jwt", "Remote"]
