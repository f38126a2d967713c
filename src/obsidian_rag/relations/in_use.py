"""Which vectors a vault's notes are compared by: all of it changes over at once."""

from dataclasses import dataclass

from obsidian_rag.relations.kinds import Kind
from obsidian_rag.relations.rows import Rows

# Almost all notes: with fewer, one vault would be ranked in two ways.
_ENOUGH = 0.95


@dataclass(frozen=True, slots=True)
class VectorsInUse:
    """How many notes have a meaning vector, and how many a static one."""

    meant: int = 0
    static: int = 0

    @classmethod
    def of(cls, rows: Rows, model: str | None) -> "VectorsInUse":
        """Of these notes; meaning vectors that another model made do not count."""
        static = rows.with_vector(Kind.STATIC)
        is_ours = model is not None and rows.vectors_made_by(Kind.MEANING) == model
        return cls(rows.with_vector(Kind.MEANING) if is_ours else 0, static)

    @property
    def kind(self) -> Kind:
        """Meaning vectors once nearly all notes have one.

        The whole vault changes over at once, so that scores do not change from minute to minute.
        """
        is_enough = self.meant > 0 and self.meant >= _ENOUGH * self.static
        return Kind.MEANING if is_enough else Kind.STATIC

    @property
    def is_mixed(self) -> bool:
        """Whether some notes have a static vector only although others are compared by meaning."""
        return self.kind is Kind.MEANING and self.meant < self.static
