"""The user's word before all notes are sent to an embedder outside this machine.

`embedding.external_consent` lets text leave; this is about the first time that it does in bulk: how
much it is, what it costs, and a yes. The yes is remembered for this provider, address and model.
`embedding.bulk_consent` gives it beforehand, for a script. Without it no run begins, the daemon's
own included, and no question is sent.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from obsidian_rag.embed import SERVED
from obsidian_rag.errors import ConfigInvalid
from obsidian_rag.index.embedding import embedder_choice
from obsidian_rag.index.fingerprint import check, fingerprint
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.progress import Mode
from obsidian_rag.index.run import FINGERPRINT
from obsidian_rag.store import IndexState

_AGREED = "sending_agreed"
# Near enough for European languages; a first look must not read the whole vault.
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would send at most, and where to."""

    host: str
    model: str
    notes: int
    tokens: int
    price_per_million: float | None

    @property
    def text(self) -> str:
        """One sentence for the user."""
        told = (
            f"The text of {self.notes:,} note{'' if self.notes == 1 else 's'}, about"
            f" {self.tokens:,} tokens, would go to {self.host} ({self.model})"
        )
        if self.price_per_million is None:
            return f"{told}; embedding.price_per_million_tokens is not set, so the cost is unknown."
        cost = self.tokens / 1_000_000 * self.price_per_million
        return f"{told} and cost about {cost:.2f}."

    def refusal(self, mode: str) -> ConfigInvalid:
        """Why a run cannot begin."""
        command = "reindex" if Mode(mode) is Mode.REINDEX else "index"
        return ConfigInvalid(
            f"Nothing was sent. {self.text}",
            f"Run `obsidian-rag {command} --yes` to agree; without --yes it asks.",
        )


class Sending:
    """Whether notes may be sent to the embedder of an installation."""

    def __init__(self, place: IndexPlace) -> None:
        self._place = place

    @property
    def trouble(self) -> ConfigInvalid | None:
        """What is wrong until the user has said yes; None if all is well."""
        if not self._is_owed:
            return None
        return ConfigInvalid(
            f"Nothing is sent to {self._host} before you have said yes to it.",
            "Run `obsidian-rag index --yes` to agree; without --yes it says how much it is, and"
            " asks.",
        )

    def estimate(self, mode: str) -> Estimate | None:
        """What a run would send, if the user has to be asked about it first.

        Raises:
            EmbeddingMismatch: such a run is refused anyway; only a rebuild can be made.
        """
        if not self._is_owed:
            return None
        place = self._place
        if Mode(mode) is not Mode.REINDEX and not IndexState(place.database).is_empty():
            check(place.database.get(FINGERPRINT), fingerprint(place.embedder, place.limits))
        files = [file for vault in place.vaults for file in vault.scan().files]
        return Estimate(
            host=self._host,
            model=place.embedder.model,
            notes=len(files),
            tokens=sum(file.size_bytes for file in files) // _BYTES_PER_TOKEN,
            price_per_million=place.config.settings.embedding.price_per_million_tokens,
        )

    def must_be_agreed(self, mode: str) -> None:
        """Every run asks this first.

        Raises:
            ConfigInvalid: the user has not said yes.
            EmbeddingMismatch: such a run is refused anyway.
        """
        if (estimate := self.estimate(mode)) is not None:
            raise estimate.refusal(mode)

    def agree(self) -> None:
        """The user has said yes."""
        self._place.database.put(_AGREED, self._identity)

    @property
    def _is_owed(self) -> bool:
        """Whether the embedder is outside this machine and the user has not said yes to it."""
        embedder = self._place.embedder
        if not embedder.is_external or embedder.provider not in SERVED:
            return False
        if self._place.config.settings.embedding.bulk_consent == embedder.provider:
            return False
        return self._place.database.get(_AGREED) != self._identity

    @property
    def _identity(self) -> str:
        embedder = self._place.embedder
        return f"{embedder.provider} {embedder.model} {self._host}"

    @property
    def _host(self) -> str:
        return urlsplit(embedder_choice(self._place.config).settings.base_url or "").netloc
