"""A note on its way into the indexes."""

from typing import NamedTuple

from obsidian_rag.relations.content import Content


class Terms(NamedTuple):
    """The terms that a speller met since it told of them last, and a word for each."""

    speller: str
    terms: list[str]
    words: list[str]


class Draft(NamedTuple):
    """A note that is to be written, and the terms that were new in it.

    A vector that is of this content has its hash; without, the one from before is kept.
    """

    content: Content
    content_hash: str
    fresh: Terms
    vector: bytes | None = None
    vector_hash: str | None = None
