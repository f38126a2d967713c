"""One function per tool, one envelope for every door."""

from obsidian_rag.tools.envelope import Envelope, Meta, failure, success
from obsidian_rag.tools.status import status

__all__ = ["Envelope", "Meta", "failure", "status", "success"]
