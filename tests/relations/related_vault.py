"""A vault on disk with its indexes of related notes, for tests that change one and look at both."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from obsidian_rag.config import RelationsSettings, Settings
from obsidian_rag.embed.hashing import HashEmbedder
from obsidian_rag.index import Listener, Mode
from obsidian_rag.index.limits import Guarded
from obsidian_rag.index.relate import relate_paths
from obsidian_rag.index.run import IndexRun, RunParts
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.rows import Rows, format_of, open_rows
from obsidian_rag.relations.score import related
from obsidian_rag.relations.signals import note_source
from obsidian_rag.relations.writer import RelatedChanges, RelationsWriter
from obsidian_rag.store import ChunkStore, Database, Links
from obsidian_rag.vault import Rules, Vault

SEED = RelationsSettings(profile="seed", discount_boilerplate=False)
DEFAULT = RelationsSettings()
RULES = Rules.from_settings(Settings().indexing)


class WordsAlone(RelationsWriter):
    """Indexes without vectors: notes are related by what they say."""

    def write(self, link_id: str, changes: RelatedChanges) -> None:
        notes = [replace(note, passages=None) for note in changes.notes]
        super().write(link_id, replace(changes, notes=notes))

    def finish(
        self,
        chunks: ChunkStore,
        indexed: Callable[[str, Sequence[str]], Mapping[str, str | None]],
        stop: Callable[[], bool],
    ) -> str | None:
        nowhere = ChunkStore(f"{chunks.uri}-nowhere")
        return super().finish(nowhere, indexed, stop)


@dataclass(frozen=True)
class Updated:
    """What a run did to the indexes of related notes."""

    is_complete: bool
    written: int
    removed: int
    unchanged: int
    ids_added: list[str]


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
    def link_id(self) -> str:
        with self.rows() as rows:
            return link_of(rows)

    def vault(self, link_id: str = "") -> Vault:
        return Vault(self.root, RULES, link_id)

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
        self,
        paths: Sequence[str] | None = None,
        *,
        stop: Callable[[], bool] = lambda: False,
        listener: Listener = lambda _: None,
        accepts_removals: bool = False,
    ) -> Updated:
        """Index the vault, or some paths of it."""
        with (
            closing(Database(self.home / "state.db")) as database,
            closing(WordsAlone(self.home, self.settings)) as notes,
        ):
            place = RunParts(
                database=database,
                chunks=ChunkStore(str(self.home / "vectors.lance")),
                embedder=HashEmbedder(8),
                vault=self.vault(Links(database).set_primary(self.root).link_id),
                limits=ChunkLimits(),
                guarded=Guarded({}, ()),
                relations=notes,
            )
            run = IndexRun(place, listener, stop, accepts_removals=accepts_removals)
            tally = run.run(Mode.SYNC, paths).tally
            is_complete = not tally.is_cancelled and not stop()
            return Updated(
                is_complete, notes.written, notes.removed, tally.unchanged, notes.ids_added
            )

    def update_early(self, paths: Sequence[str]) -> int:
        """Take up these notes and nothing else; how many were written."""
        with closing(RelationsWriter(self.home, self.settings)) as notes:
            assert notes.open_existing()
            relate_paths(self.vault(link_of(notes.rows)), ChunkLimits(), notes, paths)
            return notes.written

    @contextmanager
    def loaded(self, settings: RelationsSettings | None = None) -> Iterator[MemoryIndex]:
        """The indexes in memory, as the profile wants them."""
        with self.rows() as rows:
            yield load(rows, settings or self.settings)

    def scores(self, path: str, settings: RelationsSettings | None = None) -> dict[str, float]:
        """The notes related to the one at `path`, best first."""
        chosen = settings or self.settings
        with self.loaded(chosen) as loaded:
            return scores(loaded, path, chosen)


def link_of(rows: Rows) -> str:
    """The link id of the only vault."""
    (link_id,) = rows.link_ids().values()
    return link_id


def slots(loaded: MemoryIndex) -> dict[str, int]:
    """The slot of each note, by its path."""
    return {path: slot for (_, path), slot in loaded.by_path.items()}


def load(rows: Rows, settings: RelationsSettings) -> MemoryIndex:
    return MemoryIndex(rows, use_links=settings.use_links and settings.profile == "default")


def scores(loaded: MemoryIndex, path: str, settings: RelationsSettings) -> dict[str, float]:
    found = related(loaded, note_source(loaded, slots(loaded)[path]), settings)
    return {loaded.cards[one.slot].path: one.score for one in found}


def indexed(
    folder: Path, notes: Mapping[str, str | bytes], settings: RelationsSettings = DEFAULT
) -> RelatedVault:
    vault = RelatedVault(folder, settings)
    vault.write(notes)
    vault.update()
    return vault
