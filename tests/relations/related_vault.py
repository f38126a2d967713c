"""A vault on disk with its indexes of related notes, for tests that change one and look at both."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from obsidian_rag.config import RelationsSettings, Settings
from obsidian_rag.relations.loaded import Loaded
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.rows_file import open_rows
from obsidian_rag.relations.score import related
from obsidian_rag.relations.source import note_source
from obsidian_rag.relations.update import Ground, Updated, format_of, update
from obsidian_rag.vault import Rules

SEED = RelationsSettings(profile="seed", discount_boilerplate=False)
DEFAULT = RelationsSettings()
RULES = Rules.from_settings(Settings().indexing)


@dataclass
class RelatedVault:
    """Notes below `folder`/vault, indexes below `folder`/home."""

    folder: Path
    settings: RelationsSettings = field(default_factory=RelationsSettings)

    @property
    def root(self) -> Path:
        return self.folder / "vault"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def ground(self) -> Ground:
        return Ground(self.root, RULES, self.settings)

    def write(self, notes: Mapping[str, str | bytes]) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        for path, content in notes.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)

    @contextmanager
    def rows(self) -> Iterator[Rows]:
        with closing(open_rows(self.home, format_of(self.settings))) as rows:
            yield rows

    def update(
        self, paths: Sequence[str] | None = None, *, stop: Callable[[], bool] = lambda: False
    ) -> Updated:
        with self.rows() as rows:
            return update(rows, self.ground, paths, stop=stop)

    @contextmanager
    def loaded(self, settings: RelationsSettings | None = None) -> Iterator[Loaded]:
        """The indexes in memory, as the profile wants them."""
        with self.rows() as rows:
            yield load(rows, settings or self.settings)

    def scores(self, path: str, settings: RelationsSettings | None = None) -> dict[str, float]:
        """The notes related to the one at `path`, best first."""
        chosen = settings or self.settings
        with self.loaded(chosen) as loaded:
            return scores(loaded, path, chosen)


def load(rows: Rows, settings: RelationsSettings) -> Loaded:
    return Loaded(rows, use_links=settings.use_links and settings.profile == "default")


def scores(loaded: Loaded, path: str, settings: RelationsSettings) -> dict[str, float]:
    found = related(loaded, note_source(loaded, loaded.by_path[path]), settings)
    return {loaded.cards[one.slot].path: one.score for one in found}


def indexed(
    folder: Path, notes: Mapping[str, str | bytes], settings: RelationsSettings = DEFAULT
) -> RelatedVault:
    vault = RelatedVault(folder, settings)
    vault.write(notes)
    vault.update()
    return vault
