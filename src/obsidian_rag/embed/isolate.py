"""Embed as many texts as possible with a server that refuses whole batches.

One text that is too long, or that the model fails on, makes its whole batch fail. This finds it by
bisection, splits long texts, and retries bad ones without control characters. It does not depend
on HTTP: `send` embeds a batch or raises InputRefused.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.embedder import InputsRejected, weighted_mean
from obsidian_rag.errors import ProviderFailed

Row = NDArray[np.float32]
Send = Callable[[list[str]], NDArray[np.float32]]
_TEST_TEXT = "ok"


class InputRefused(Exception):
    """The server refuses a batch because of its content."""

    def __init__(self, reason: str, is_too_long: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_too_long = is_too_long


@dataclass(frozen=True, slots=True)
class Batches:
    """The limits of one request: a number of texts, and their size in bytes.

    Bytes stand for tokens: a text never has more tokens than bytes.
    """

    texts: int
    size: int | None = None

    def cut(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Batches of the texts, in order; a text above the limit gets its own batch."""
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
    """Embeds texts batch by batch, and isolates those that the server refuses."""

    def __init__(self, send: Send, batches: Batches) -> None:
        self._send = send
        self._batches = batches
        self._is_server_sane = False
        self._reason = ""

    def embed(self, texts: Sequence[str]) -> list[Row]:
        """The vector of each text.

        Raises:
            InputsRejected: some texts were refused in every form.
            ProviderFailed: the server refuses even a harmless text.
        """
        found: list[Row | None] = []
        for batch in self._batches.cut(texts):
            found += self._embed_batch(batch)
        rejected = tuple(position for position, row in enumerate(found) if row is None)
        if rejected:
            raise InputsRejected(
                f"{len(rejected)} of {len(texts)} texts cannot be embedded ({self._reason}).",
                rejected,
            )
        return [row for row in found if row is not None]

    def _embed_batch(self, texts: list[str]) -> list[Row | None]:
        try:
            return list(self._send(texts))
        except InputRefused as refusal:
            if len(texts) > 1:
                middle = len(texts) // 2
                return self._embed_batch(texts[:middle]) + self._embed_batch(texts[middle:])
            self._reason = refusal.reason
            is_too_long = refusal.is_too_long
        self._check_server()
        return [self._embed_halves(texts[0]) if is_too_long else self._embed_cleaned(texts[0])]

    def _embed_halves(self, text: str) -> Row | None:
        """The mean over both halves, weighted by length, so that no text is dropped."""
        halves = split_in_two(text)
        if halves is None:
            return None
        rows = self._embed_batch(list(halves))
        kept = [row for row in rows if row is not None]
        if len(kept) < len(halves):
            return None
        return weighted_mean(kept, [len(half) for half in halves])

    def _embed_cleaned(self, text: str) -> Row | None:
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
        # Otherwise a broken model would get a request for every text of the vault.
        if self._is_server_sane:
            return
        try:
            self._send([_TEST_TEXT])
        except InputRefused as refusal:
            raise ProviderFailed(
                f"The embedding model refused every text ({refusal.reason}).",
                "Try another model, or look at the server's log.",
            ) from refusal
        self._is_server_sane = True


def split_in_two(text: str) -> tuple[str, str] | None:
    """Split at the white space nearest to the middle; None if the text is too short."""
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
