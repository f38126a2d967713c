"""The user's word before all notes are sent to an embedder outside this machine.

`embedding.external_consent` lets text leave; this is about the first time that it does in bulk: how
much it is, what it costs, and a yes. The yes is remembered for this provider, address and model.
`embedding.bulk_consent` gives it beforehand, for a script. Without it no run begins, the daemon's
own included, and no question is sent.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from obsidian_rag.embed import SERVED
from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import ConfigInvalid, ObsidianRagError
from obsidian_rag.index import FINGERPRINT, Mode, check, embedder_choice, fingerprint
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


def is_sending_owed(engine: Engine) -> bool:
    """Whether the embedder is outside this machine and the user has not said yes to it."""
    if not engine.embedder.is_external or engine.embedder.provider not in SERVED:
        return False
    if engine.config.settings.embedding.bulk_consent == engine.embedder.provider:
        return False
    return engine.database.get(_AGREED) != _identity(engine)


def sending_trouble(engine: Engine) -> ObsidianRagError | None:
    """What is wrong until the user has said yes; None if all is well."""
    if not is_sending_owed(engine):
        return None
    return ConfigInvalid(
        f"Nothing is sent to {_host(engine)} before you have said yes to it.",
        "Run `obsidian-rag index --yes` to agree; without --yes it says how much it is, and asks.",
    )


def owed_sending(engine: Engine, mode: str) -> Estimate | None:
    """What a run would send, if the user has to be asked about it first.

    Raises:
        EmbeddingMismatch: such a run is refused anyway; only a rebuild can be made.
    """
    if not is_sending_owed(engine):
        return None
    if Mode(mode) is not Mode.REINDEX and not IndexState(engine.database).is_empty():
        made = engine.database.get(FINGERPRINT)
        check(made, fingerprint(engine.embedder, engine.limits))
    files = [file for vault in engine.vaults for file in vault.scan().files]
    return Estimate(
        host=_host(engine),
        model=engine.embedder.model,
        notes=len(files),
        tokens=sum(file.size_bytes for file in files) // _BYTES_PER_TOKEN,
        price_per_million=engine.config.settings.embedding.price_per_million_tokens,
    )


def not_agreed(estimate: Estimate, mode: str) -> ConfigInvalid:
    """Why a run cannot begin."""
    command = "reindex" if Mode(mode) is Mode.REINDEX else "index"
    return ConfigInvalid(
        f"Nothing was sent. {estimate.text}",
        f"Run `obsidian-rag {command} --yes` to agree; without --yes it asks.",
    )


def agree_to_sending(engine: Engine) -> None:
    """The user has said yes."""
    engine.database.put(_AGREED, _identity(engine))


def _identity(engine: Engine) -> str:
    return f"{engine.embedder.provider} {engine.embedder.model} {_host(engine)}"


def _host(engine: Engine) -> str:
    return urlsplit(embedder_choice(engine.config).settings.base_url or "").netloc
