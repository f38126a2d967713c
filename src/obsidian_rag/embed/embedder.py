"""What every embedder promises, and how it says that single texts cannot be embedded."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.errors import ProviderFailed


class Embedder(Protocol):
    """Turns text into unit vectors: the same text always gives the same vector."""

    @property
    def provider(self) -> str:
        """`builtin`, `hash`, `onnx`, `ollama`, `openai` or `gemini`."""
        ...

    @property
    def model(self) -> str:
        """The model's name as people know it."""
        ...

    @property
    def is_external(self) -> bool:
        """Whether text would leave this machine."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """How many tokens one vector represents well; None if there is no limit."""
        ...

    @property
    def dimensions(self) -> int:
        """Width of the vectors; the first use may load the model or ask the server."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes exactly when the vectors of the same text would change."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in order; a blank text gets one fixed vector.

        Raises:
            InputsRejected: the provider works but refuses some of the texts.
            ProviderFailed, OllamaUnreachable, EmbeddingMismatch: nothing can be embedded now.
        """
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        ...

    def probe(self) -> None:
        """Check cheaply that embedding would work.

        Raises:
            OllamaUnreachable, ProviderFailed: it would not.
        """
        ...

    def close(self) -> None:
        """Let go of connections and weights; a later call takes them up again."""
        ...


class InputsRejected(ProviderFailed):
    """The provider works but refuses some texts; `positions` are their indexes."""

    def __init__(self, message: str, positions: tuple[int, ...]) -> None:
        super().__init__(message, "Look at these notes; all other notes can be embedded.")
        self.positions = positions
