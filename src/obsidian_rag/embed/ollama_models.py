"""What is known of Ollama's embedding models without asking.

Prefixes as each model was trained with them, from the model cards.
"""

from dataclasses import replace

from obsidian_rag.embed.served import KnownModel

DEFAULT_MODEL = "mxbai-embed-large"
_PASSAGES = "Represent this sentence for searching relevant passages: "
_UNKNOWN = KnownModel(None, 512)
_KNOWN = {
    "mxbai-embed-large": KnownModel(1024, 512, _PASSAGES),
    "snowflake-arctic-embed": KnownModel(1024, 512, _PASSAGES),
    "nomic-embed-text": KnownModel(768, 2048, "search_query: ", "search_document: "),
    "embeddinggemma": KnownModel(
        768, 2048, "task: search result | query: ", "title: none | text: "
    ),
    "all-minilm": KnownModel(384, 256),
    "bge-m3": KnownModel(1024, 8192),
}


def known_model(name: str) -> KnownModel:
    """What is known of a model; the width only if no tag could have chosen another size."""
    family, _, tag = name.partition(":")
    known = _KNOWN.get(family, _UNKNOWN)
    return known if tag in ("", "latest") else replace(known, dimensions=None)


def model_inside(name: str) -> KnownModel:
    """What is known of a model that another server calls by a name of its own."""
    lower = name.lower()
    for family, known in _KNOWN.items():
        if family in lower:
            return replace(known, dimensions=None)
    return _UNKNOWN


def same_model(one: str, other: str) -> bool:
    """Whether two names mean the same model: no tag means `latest`."""
    return untagged(one) == untagged(other)


def untagged(name: str) -> str:
    """The name without the tag that adds nothing."""
    return name.removesuffix(":latest")
