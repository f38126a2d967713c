"""One function per tool, one envelope for every door."""

from obsidian_rag.tools.envelope import Envelope, Meta, failure, success
from obsidian_rag.tools.index import index_outcome
from obsidian_rag.tools.status import status

__all__ = ["Envelope", "Meta", "failure", "index_outcome", "status", "success"]
