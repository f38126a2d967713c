"""The built-in model's tokens, found word by word and remembered.

The Llama 2 tokenizer has no notion of words: it merges pairs over the whole text. But no token
of its vocabulary reaches across a space or a line break, so the tokens of a text are the
tokens of its words, and a word's tokens can be kept. That halves the work on real notes and
is exact: a test compares with the plain tokenizer.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SPACE = "\u2581"
_WORD = re.compile(r"\n| *[^ \n]+| +")
_SPECIAL = re.compile(r"<s>|</s>|<unk>")
_WORDS_KEPT = 60_000
_WORDS_PER_REQUEST = 64


class WordPieces:
    """Token ids of texts; safe to use from several threads."""

    def __init__(self, tokenizer_file: Path) -> None:
        from tokenizers import Tokenizer, normalizers

        self._file = str(tokenizer_file)
        self._words: Tokenizer = Tokenizer.from_file(self._file)
        self._words.no_padding()
        self._words.no_truncation()
        self._words.normalizer = normalizers.Replace(" ", _SPACE)
        self._line_break: int = self._words.encode("\n", add_special_tokens=False).ids[0]
        self._known = self._nothing_known()

    def tokens(self, texts: Sequence[str]) -> Iterator[NDArray[np.int32]]:
        """The token ids of each text."""
        # A full memory is replaced, never emptied: another thread may still be reading it.
        if len(self._known) > _WORDS_KEPT:
            self._known = self._nothing_known()
        known = self._known
        words = [_WORD.findall(" " + text.replace(_SPACE, " ")) if text else [] for text in texts]
        self._learn(known, list(set(chain.from_iterable(words)).difference(known)))
        for text, parts in zip(texts, words, strict=True):
            if "<" in text and _SPECIAL.search(text):
                yield np.asarray(self.plain_tokens(text), dtype=np.int32)
            else:
                yield np.fromiter(chain.from_iterable(map(known.__getitem__, parts)), np.int32)

    def plain_tokens(self, text: str) -> list[int]:
        """The token ids by the unchanged tokenizer, which alone knows its own marks."""
        ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return ids

    @cached_property
    def _plain(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        plain: Tokenizer = Tokenizer.from_file(self._file)
        plain.no_padding()
        plain.no_truncation()
        return plain

    def _learn(self, known: dict[str, list[int]], words: list[str]) -> None:
        groups = [
            words[start : start + _WORDS_PER_REQUEST]
            for start in range(0, len(words), _WORDS_PER_REQUEST)
        ]
        lines = ["\n".join(group) + "\n" for group in groups]
        encodings = self._words.encode_batch_fast(lines, add_special_tokens=False)
        for group, encoding in zip(groups, encodings, strict=True):
            ids, start = encoding.ids, 0
            for word in group:
                end = ids.index(self._line_break, start)
                known[word] = ids[start:end]
                start = end + 1

    def _nothing_known(self) -> dict[str, list[int]]:
        return {"\n": [self._line_break]}
