"""Get as many texts embedded as possible from a server that refuses whole batches.

One text that is too long, or that the model chokes on, fails the batch it stands in. This
finds it by halving, cuts long texts in pieces, and tries a cleaned form of bad ones. It knows
nothing of HTTP: `send` embeds a batch or raises InputRefused.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.embedder import InputsRejected
from obsidian_rag.embed.vectors import weighted_mean
from obsidian_rag.errors import ProviderFailed

Row = NDArray[np.float32]
Send = Callable[[list[str]], NDArray[np.float32]]
_HARMLESS = "ok"


class InputRefused(Exception):
    """The server refuses a batch because of what is in it."""

    def __init__(self, reason: str, is_too_long: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_too_long = is_too_long


@dataclass(frozen=True, slots=True)
class Batches:
    """How much a server takes at once: so many texts, and so many bytes of them.

    No tokenizer makes more tokens of a text than it has bytes.
    """

    texts: int
    size: int | None = None

    def cut(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The texts in their order; one that is too large by itself goes alone."""
        batch: list[str] = []
        size = 0
        for text in texts:
            length = len(text.encode("utf-8", "replace"))
            is_full = self.size is not None and size + length > self.size
            if batch and (is_full or len(batch) == self.texts):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += length
        if batch:
            yield batch


class Isolation:
    """One run over some texts, a batch at a time."""

    def __init__(self, send: Send, batches: Batches) -> None:
        self._send = send
        self._batches = batches
        self._is_server_sane = False
        self._reason = ""

    def embed(self, texts: Sequence[str]) -> list[Row]:
        """The vector of each text.

        Raises:
            InputsRejected: some texts were refused in every form.
            ProviderFailed: even a harmless text is refused.
        """
        found: list[Row | None] = []
        for batch in self._batches.cut(texts):
            found += self._batch(batch)
        rejected = tuple(position for position, row in enumerate(found) if row is None)
        if rejected:
            raise InputsRejected(
                f"{len(rejected)} of {len(texts)} texts cannot be embedded ({self._reason}).",
                rejected,
            )
        return [row for row in found if row is not None]

    def _batch(self, texts: list[str]) -> list[Row | None]:
        try:
            return list(self._send(texts))
        except InputRefused as refusal:
            if len(texts) > 1:
                middle = len(texts) // 2
                return self._batch(texts[:middle]) + self._batch(texts[middle:])
            self._reason = refusal.reason
            is_too_long = refusal.is_too_long
        self._check_server()
        return [self._in_pieces(texts[0]) if is_too_long else self._cleaned(texts[0])]

    def _in_pieces(self, text: str) -> Row | None:
        """The mean over both halves, weighted by length, so that no text is dropped."""
        halves = split_in_two(text)
        if halves is None:
            return None
        rows = self._batch(list(halves))
        kept = [row for row in rows if row is not None]
        if len(kept) < len(halves):
            return None
        return weighted_mean(kept, [len(half) for half in halves])

    def _cleaned(self, text: str) -> Row | None:
        """The vector of the text without control characters, or of a half that works."""
        clean = without_controls(text)
        candidates = [clean] if clean != text else []
        candidates += split_in_two(clean) or ()
        for candidate in candidates:
            try:
                row: Row = self._send([candidate])[0]
                return row
            except InputRefused as refusal:
                self._reason = refusal.reason
        return None

    def _check_server(self) -> None:
        # Without this, a broken model would be asked once for every text of the vault.
        if self._is_server_sane:
            return
        try:
            self._send([_HARMLESS])
        except InputRefused as refusal:
            raise ProviderFailed(
                f"The embedding model refused every text ({refusal.reason}).",
                "Try another model, or look at the server's log.",
            ) from refusal
        self._is_server_sane = True


def split_in_two(text: str) -> tuple[str, str] | None:
    """Two parts that are not blank, cut at the white space nearest to the middle."""
    text = text.strip()
    if len(text) < 2:
        return None
    middle = len(text) // 2
    for distance in range(middle):
        for cut in (middle - distance, middle + distance):
            if cut < len(text) and text[cut].isspace():
                return text[:cut], text[cut:]
    return text[:middle], text[middle:]


def without_controls(text: str) -> str:
    """`text` without invisible control, format and private characters."""
    return "".join(
        character
        for character in text
        if character in "\n\t" or not unicodedata.category(character).startswith("C")
    )
