"""Consent before all notes are sent to an external embedder.

`embedding.external_consent` allows text to leave the machine; this asks before the first bulk
transfer, with its size and cost. Consent is stored per provider, address and model.
`embedding.bulk_consent` gives it in advance, for scripts. Without it no run starts, not even the
daemon's, and no query is sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from obsidian_rag.embed import SERVED
from obsidian_rag.errors import ConfigInvalid
from obsidian_rag.index.embedding import embedder_choice
from obsidian_rag.index.fingerprint import check_fingerprint
from obsidian_rag.index.parts import Parts
from obsidian_rag.index.progress import Mode
from obsidian_rag.index.reader import NoteReader, Read, Request, VaultSource, Wanted
from obsidian_rag.notes import QUARTERS, RagPolicy, quarter_tokens
from obsidian_rag.store import IndexFact, IndexState
from obsidian_rag.vault import FileEntry, Vault

_AGREED_KEY = "sending_agreed"
# Larger vaults are sampled: an estimate must not read all notes.
_MAX_SAMPLE_NOTES = 500


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of what a run would send, and where to."""

    host: str
    model: str
    notes: int
    tokens: int
    price_per_million: float | None

    @property
    def text(self) -> str:
        """One sentence for the user."""
        amount = (
            f"The text of {self.notes:,} note{'' if self.notes == 1 else 's'}, about"
            f" {self.tokens:,} tokens, would go to {self.host} ({self.model})"
        )
        if self.price_per_million is None:
            return (
                f"{amount}; embedding.price_per_million_tokens is not set, so the cost is unknown."
            )
        cost = self.tokens / 1_000_000 * self.price_per_million
        shown = f"about {cost:.2f}" if cost >= 0.005 or not cost else "less than 0.01"
        return f"{amount} and cost {shown}."

    def refusal(self, mode: str) -> ConfigInvalid:
        """The error for a run without consent."""
        command = "reindex" if Mode(mode) is Mode.REINDEX else "index"
        return ConfigInvalid(
            f"Nothing was sent. {self.text}",
            f"Run `obsidian-rag {command} --yes` to agree; without --yes it asks.",
        )


class Sending:
    """Whether the notes of these vaults may be sent to the embedder."""

    def __init__(self, parts: Parts, vaults: Iterable[Vault]) -> None:
        self._parts = parts
        self._vaults = vaults

    @property
    def trouble(self) -> ConfigInvalid | None:
        """The error while consent is missing; None if it is given or not needed."""
        if not self._needs_consent:
            return None
        return ConfigInvalid(
            f"Nothing is sent to {self._host} until you agree.",
            "Run `obsidian-rag index --yes` to agree; without --yes it says how much it is, and"
            " asks.",
        )

    def estimate(self, mode: str) -> Estimate | None:
        """What a run would send, if the user must agree first.

        Raises:
            EmbeddingMismatch: such a run is refused anyway; only a rebuild is possible.
        """
        if not self._needs_consent:
            return None
        parts = self._parts
        if Mode(mode) is not Mode.REINDEX and not IndexState(parts.database).is_empty():
            check_fingerprint(parts.database.get(IndexFact.FINGERPRINT), parts.fingerprint)
        notes, tokens = self._estimate_amount()
        return Estimate(
            host=self._host,
            model=parts.embedder.model,
            notes=notes,
            tokens=tokens,
            price_per_million=parts.config.settings.embedding.price_per_million_tokens,
        )

    def _estimate_amount(self) -> tuple[int, int]:
        """Estimated number of notes with text to send, and its tokens."""
        files = [(vault, file) for vault in self._vaults for file in vault.scan().files]
        step = max(1, -(-len(files) // _MAX_SAMPLE_NOTES))
        sample = files[::step]
        tokens = [self._count_tokens(vault, file) for vault, file in sample]
        sampled = sum(file.size_bytes for _, file in sample)
        share = sum(file.size_bytes for _, file in files) / sampled if sampled else 1.0
        notes = sum(1 for one in tokens if one) * len(files) / max(1, len(sample))
        return round(notes), round(sum(tokens) * share)

    def _count_tokens(self, vault: Vault, file: FileEntry) -> float:
        guarded = self._parts.guarded
        reader = NoteReader(VaultSource.of(vault, self._parts.limits, None))
        found = reader.read(Request(file.rel_path, for_chunks=Wanted(None)))
        if not isinstance(found, Read):
            return 0.0
        is_private = found.policy is not RagPolicy.INDEX
        texts = (
            guarded.sendable(found.title, chunk, is_private=is_private)
            for chunk in found.chunks or ()
        )
        return sum(quarter_tokens(text) for text in texts if text) / QUARTERS

    def must_be_agreed(self, mode: str) -> None:
        """Check consent; every run calls this first.

        Raises:
            ConfigInvalid: the user has not agreed.
            EmbeddingMismatch: such a run is refused anyway.
        """
        if (estimate := self.estimate(mode)) is not None:
            raise estimate.refusal(mode)

    def agree(self) -> None:
        """Store the user's consent."""
        self._parts.database.put(_AGREED_KEY, self._identity)

    @property
    def _needs_consent(self) -> bool:
        """Whether the embedder is external and the user has not agreed to it yet."""
        embedder = self._parts.embedder
        if not embedder.is_external or embedder.provider not in SERVED:
            return False
        if self._parts.config.settings.embedding.bulk_consent == embedder.provider:
            return False
        return self._parts.database.get(_AGREED_KEY) != self._identity

    @property
    def _identity(self) -> str:
        embedder = self._parts.embedder
        return f"{embedder.provider} {embedder.model} {self._host}"

    @property
    def _host(self) -> str:
        return urlsplit(embedder_choice(self._parts.config).settings.base_url or "").netloc
