"""A CouchDB client: requests, answers, authentication, and the feed of changes."""

from obsidian_rag.livesync.couchdb.answers import Change
from obsidian_rag.livesync.couchdb.auth import Jwt
from obsidian_rag.livesync.couchdb.bulk import BulkRow
from obsidian_rag.livesync.couchdb.couch import Couch, Document
from obsidian_rag.livesync.couchdb.remote import Remote

__all__ = ["BulkRow", "Change", "Couch", "Document", "Jwt", "Remote"]
