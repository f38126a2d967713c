"""Frozen settings, from flag > environment > file > default.

The file is JSON with the keys of the plugin design. Every default and help text is defined here.
Other packages get the values they need as arguments; nothing else reads the environment or the
file. Settings hold no secrets, only the names of the environment variables that do.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from obsidian_rag.config.problems import nearest_setting, refusal
from obsidian_rag.data_folder import (
    DAEMON_FILE,
    ENV_PREFIX,
    config_file,
    data_home,
    read_file,
    write_atomically,
)
from obsidian_rag.errors import ConfigInvalid

Provider = Literal["builtin", "ollama", "onnx", "hash", "openai", "gemini", "same_as_model"]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Section(BaseModel):
    """A section of the config file."""

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        serialize_by_alias=True,
    )


class EmbeddingSettings(Section):
    """How text becomes vectors."""

    provider: Provider = Field("builtin", description="What makes the vectors")
    model: str | None = Field(
        None, description="Model name, or model folder (onnx); else the provider's default"
    )
    base_url: str | None = Field(
        None,
        description="Address of the server; else the provider's usual one",
    )
    api_key_env: Variable | None = Field(
        None,
        description="Environment variable with the key; else the usual one, without base_url only",
    )
    dimensions: int | None = Field(
        None, ge=8, le=8192, description="Vector width: asked of openai and gemini, else expected"
    )
    timeout_s: float = Field(60, gt=0, description="How long one embedding request may take")
    external_consent: bool = Field(
        False, description="With local_only off: allow sending note text to a non-loopback embedder"
    )
    bulk_consent: Literal["ollama", "openai", "gemini"] | None = Field(
        None, description="Provider that may be sent all notes without asking first"
    )
    price_per_million_tokens: float | None = Field(
        None, ge=0, description="What the provider charges, in your currency; for the estimate"
    )


class ModelSettings(Section):
    """The chat model; `embedding.provider: same_as_model` takes provider, address and key of it."""

    provider: Literal["openai", "gemini", "ollama", "anthropic"] | None = Field(
        None, description="Its provider"
    )
    model: str | None = Field(None, description="Its name")
    base_url: str | None = Field(
        None,
        description="Address of the server; else the provider's usual one",
    )
    api_key_env: Variable | None = Field(None, description="Environment variable with the key")


CONFIG_VERSION = 1
_PATH_VARIABLES = {"HOME", "CONFIG"}
# The HTTP server reads these once, at start; a running daemon follows all other settings.
NEEDS_RESTART = ("server.port", "server.max_requests_per_s", "server.read_timeout_s")
# What an index was built with.
NEEDS_REINDEX = (
    "embedding.provider",
    "embedding.model",
    "embedding.dimensions",
    "indexing.chunk_size",
    "indexing.chunk_overlap",
    "security.strip_code_blocks",
)


class MeaningSettings(Section):
    """Meaning vectors: a transformer's, added in the background to the static ones."""

    enabled: bool = Field(True, description="Add and use them when the model is installed")
    model: str = Field("minilm", pattern=r"^[\w][\w.-]*$", description="Name in `model list`")
    is_paused: bool = Field(False, alias="paused", description="Pause adding them")


class VectorStoreSettings(Section):
    """Where vectors are kept."""

    type: Literal["lancedb"] = Field("lancedb", description="Kind of store; there is only this one")
    path: str | None = Field(
        None, description="Folder or object-store URI; by default vectors.lance in the data folder"
    )
    private_consent: bool = Field(
        False, description="Keep private passages in an object store, too; else they stay out of it"
    )


class IndexingSettings(Section):
    """Which files are read and how they are cut."""

    chunk_size: int = Field(500, ge=32, le=8192, description="Largest chunk, in tokens")
    chunk_overlap: int = Field(
        100, ge=0, description="Tokens shared by neighbouring windows of a note without sections"
    )
    file_patterns: tuple[str, ...] = Field(
        ("*.md", "*.canvas"), min_length=1, description="File names to index"
    )
    deny_dirs: tuple[str, ...] = Field(
        (".obsidian", ".trash", "zzz-Archive", ".git", ".logseq"),
        description="Folder names or paths never read",
    )
    allow_dirs: tuple[str, ...] = Field((), description="If not empty, only these folders are read")
    max_file_mb: float = Field(10, gt=0, description="Larger files are skipped, with a reason")
    max_chunks: int = Field(
        20_000, ge=1, description="Files with more chunks are skipped, with a reason"
    )

    @model_validator(mode="after")
    def _check_overlap(self) -> "IndexingSettings":
        if self.chunk_overlap * 2 > self.chunk_size:
            raise ValueError("chunk_overlap may be at most half of chunk_size")
        return self


class SecuritySettings(Section):
    """What is private and what may leave the machine."""

    require_confirmation_for: tuple[str, ...] = Field(
        ("health", "financial_debt"), description="Categories an agent must confirm"
    )
    sensitive_sections: tuple[str, ...] = Field(
        ("#mentalhealth", "#physicalhealth", "#Relations"),
        description="Headings of sensitive sections",
    )
    sensitive_policy: Literal["flag", "withhold"] = Field(
        "flag",
        description="What agents get of sensitive passages: marked text, or none until confirmed",
    )
    local_only: bool = Field(True, description="Refuse every connection outside this machine")
    strip_code_blocks: bool = Field(
        True, description="Leave code blocks out of vectors; word search still finds them"
    )


class MemorySettings(Section):
    """What is worth remembering."""

    auto_suggest: bool = Field(True, description="Propose facts to remember with search results")
    patterns: dict[str, tuple[str, ...]] = Field(
        {
            "financial": ("owe", "owed", "debt", "paid", "$", "spent", "spend"),
            "health": ("#mentalhealth", "#physicalhealth", "medication", "therapy"),
            "commitments": ("shopping list", "costco", "amazon", "grocery"),
        },
        description="Words that mark a passage as worth remembering, by category",
    )


class ServerSettings(Section):
    """The daemon and its HTTP door, which only ever listens on 127.0.0.1."""

    port: int = Field(0, ge=0, le=65535, description="Port of the HTTP server; 0 picks a free one")
    probe_s: float = Field(30, gt=0, description="How often health is checked")
    idle_exit_s: float = Field(
        0, ge=0, description="Stop after this long without a request or a job; 0 is never"
    )
    shutdown_wait_s: float = Field(
        20, ge=0, description="How long a stopping daemon waits for the running job"
    )
    max_body_kb: int = Field(256, ge=1, le=16384, description="Largest request body")
    max_requests_per_s: float = Field(
        500, gt=0, description="Most requests per second; short bursts may be twice as many"
    )
    read_timeout_s: float = Field(10, gt=0, description="How long a request may take to arrive")


class WatcherSettings(Section):
    """How edits become searchable by themselves."""

    enabled: bool = Field(True, description="Watch the vault while the daemon runs")
    debounce_s: float = Field(2, ge=0, le=60, description="Wait this long after an edit, then read")
    collect_s: float = Field(
        5, ge=0, le=600, description="Changed files are collected for this long"
    )
    reconcile_s: float = Field(
        600, ge=1, description="How often a scan looks for what the watcher missed"
    )


Weight = Annotated[float, Field(ge=0, le=1)]


class RelationsSettings(Section):
    """Which notes belong together; a weight that is not set is the profile's."""

    profile: Literal["default", "seed"] = Field(
        "default", description="`seed` scores exactly as Smart Relations does, without our signals"
    )
    excluded_folders: tuple[str, ...] = Field((), description="Folders that are not related")
    auto_add_ids: bool = Field(False, description="Write an `id` into notes that have none")
    rich_format: bool = Field(
        True, description="Write `related:` as id, rel and auto, not ids only"
    )
    bm25_weight: Weight | None = Field(None, description="Share of the text's words")
    cosine_weight: Weight | None = Field(None, description="Share of rare words in common")
    tag_weight: Weight | None = Field(None, description="Share of common tags")
    term_weight: Weight | None = Field(None, description="Share of the common vocabulary")
    graph_weight: Weight | None = Field(None, description="Share of closeness in the graph")
    neighbour_weight: Weight | None = Field(None, description="Share of common neighbours")
    vector_weight: Weight | None = Field(None, description="Share of meaning; 0 switches it off")
    title_weight: Weight | None = Field(None, description="Share of titles and aliases named")
    min_score: float = Field(0.10, ge=0, le=1, description="Lower combined scores are not shown")
    max_results: int = Field(20, ge=1, le=200, description="Show at most this many notes")
    ngram_size: int = Field(3, ge=2, le=5, description="Letters per piece when titles are compared")
    max_chars: int | None = Field(None, ge=1000, description="Most characters read of a note")
    store_positions: bool = Field(True, description="Remember on which lines terms appear")
    use_links: bool = Field(True, description="Links between notes count as ties")
    discount_boilerplate: bool = Field(True, description="Lines that many notes share do not count")
    discount_daily: bool = Field(True, description="Daily notes are suggested less")
    hide_linked: bool = Field(True, description="Leave out notes that the note links to already")
    debounce_ms: int = Field(500, ge=0, le=60_000, description="Wait this long after an edit")


class LivesyncSettings(Section):
    """The LiveSync network; the first six have the names of the node's own design."""

    enabled: bool = Field(False, description="Sync while the daemon runs")
    couchdbUrl: str | None = Field(None, description="Address of the CouchDB server")
    couchdbUser: str | None = Field(None, description="Its user")
    couchdbPassword: SecretStr | None = Field(
        None, description="`${NAME}` takes it from the environment; `livesync setup` keeps it safer"
    )
    dbName: str | None = Field(None, description="Name of the database")
    vaultPath: str | None = Field(None, description="Folder to sync; else the vault")
    logLevel: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="How much is logged"
    )
    remote_consent: bool = Field(
        False, description="Your consent to sync with a server outside this machine"
    )
    read_only: bool = Field(False, description="Take changes, send none")
    syncOnlyRegEx: str = Field("", description="LiveSync's: sync only paths that match")
    syncIgnoreRegEx: str = Field("", description="LiveSync's: never sync paths that match")
    useIgnoreFiles: bool | None = Field(None, description="LiveSync's; else as the devices agreed")
    ignoreFiles: str | None = Field(None, description="LiveSync's; such as `.gitignore,.ignore`")
    conflicts: Literal["file", "branch"] = Field(
        "file",
        description="A note changed in two places: keep ours as a file beside it, or as a branch",
    )
    merge: bool = Field(True, description="Merge such notes where their changes do not meet")
    max_deleted_percent: float = Field(
        20, gt=0, le=100, description="When more files are gone, stop and ask"
    )
    trash_days: int = Field(30, ge=0, description="How long removed files can be restored")
    debounce_s: float = Field(2, ge=0, le=60, description="Wait this long after an edit, then send")


class Settings(Section):
    """All settings of one installation."""

    version: int = Field(CONFIG_VERSION, ge=1, le=CONFIG_VERSION, description="Format of the file")
    vault_path: str | None = Field(None, description="Folder of the vault")
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    model: ModelSettings = Field(default_factory=ModelSettings)
    meaning: MeaningSettings = Field(default_factory=MeaningSettings)
    vector_store: VectorStoreSettings = Field(default_factory=VectorStoreSettings)
    indexing: IndexingSettings = Field(default_factory=IndexingSettings)
    security: SecuritySettings = Field(default_factory=SecuritySettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    server: ServerSettings = Field(default_factory=ServerSettings)
    watcher: WatcherSettings = Field(default_factory=WatcherSettings)
    relations: RelationsSettings = Field(default_factory=RelationsSettings)
    livesync: LivesyncSettings = Field(default_factory=LivesyncSettings)

    @field_validator("vault_path")
    @classmethod
    def _check_vault_path(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("vault_path is empty")
        return value


@dataclass(frozen=True, slots=True)
class Config:
    """Settings with every path made absolute, as passed to the rest of the program."""

    home: Path
    file: Path
    settings: Settings
    # From flags and the environment, by dotted name; they win over the file.
    overrides: Mapping[str, object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        self._check_store_places()

    @property
    def has_vault(self) -> bool:
        """Whether a vault has been chosen."""
        return self.settings.vault_path is not None

    @property
    def vault_roots(self) -> tuple[Path, ...]:
        """The vaults' folders, absolute; symlinks are kept as the user wrote them."""
        if self.settings.vault_path is None:
            raise ConfigInvalid(
                "No vault is configured.", "Run `obsidian-rag init --vault /path/to/vault`."
            )
        return (self._absolute(self.settings.vault_path),)

    @property
    def vault_root(self) -> Path:
        """The folder of the first vault."""
        return self.vault_roots[0]

    @property
    def vector_uri(self) -> str:
        """Folder or object-store URI of the chunk store."""
        path = self.settings.vector_store.path
        if path is None:
            return str(self.home / "vectors.lance")
        return path if "://" in path else str(self._absolute(path))

    @property
    def is_store_remote(self) -> bool:
        """Whether the chunk store has an address and may be outside this machine."""
        return "://" in self.vector_uri

    @property
    def embedding(self) -> EmbeddingSettings:
        """How text becomes vectors, with the path of a model folder made absolute."""
        settings = self.settings.embedding
        if settings.model is None or settings.provider != "onnx" or "/" not in settings.model:
            return settings
        return settings.model_copy(update={"model": str(self._absolute(settings.model))})

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.home / "state.db"

    def value(self, name: str) -> Any:
        """A setting, or a section, by its dotted name, as JSON; secrets stay hidden."""
        found: Any = self.settings.model_dump(mode="json")
        for part in name.split("."):
            found = found[part]
        return found

    def renewed(self, tree: dict[str, Any]) -> "Config":
        """This configuration with new file content; flags and the environment still win.

        Raises:
            ConfigInvalid: a setting is unknown or has a wrong value.
        """
        for name, value in self.overrides.items():
            put_value(tree, name, value)
        settings = validate(tree, self.file, self.overrides)
        return Config(self.home, self.file, settings, self.overrides)

    @property
    def override_digests(self) -> dict[str, str]:
        """Digests of the overrides, which another process can compare."""
        return {name: _digest(self.value(name)) for name in self.overrides}

    def differing(self, overrides: Mapping[str, str]) -> list[str]:
        """The settings that differ in a process with the same file and these override digests."""
        names = sorted({*overrides, *self.overrides})
        if not names:
            return []
        try:
            plain = Config(self.home, self.file, validate(read_file(self.file), self.file))
        except ConfigInvalid:  # the file is valid only together with the overrides
            return [name for name in names if name not in self.overrides] or names
        return [
            name
            for name in names
            if _digest(self.value(name)) != overrides.get(name, _digest(plain.value(name)))
        ]

    @property
    def restart_values(self) -> dict[str, object]:
        """The settings that take effect only when the daemon starts."""
        return {name: self.value(name) for name in NEEDS_RESTART}

    def restart_needed(self, started_with: Mapping[str, object]) -> list[str]:
        """The settings that have changed since a daemon started with these restart values."""
        now = self.restart_values
        return [name for name, value in started_with.items() if now.get(name) != value]

    @property
    def daemon_file(self) -> Path:
        """The file in which a running daemon publishes its address."""
        return self.home / DAEMON_FILE

    @property
    def logs(self) -> Path:
        """The folder of our logs."""
        return self.home / "logs"

    def _absolute(self, path: str) -> Path:
        return Path(os.path.abspath(self.file.parent / Path(path).expanduser()))  # noqa: PTH100

    def _check_store_places(self) -> None:
        if self.is_store_remote and self.settings.security.local_only:
            raise ConfigInvalid(
                "vector_store.path is a remote address, but security.local_only is on.",
                "Use a local folder, or set security.local_only to false.",
            )
        vaults = [root.resolve() for root in self.vault_roots] if self.has_vault else []
        places = [("data folder", self.home)]
        if not self.is_store_remote or self.vector_uri.startswith("file://"):
            places.append(("vector store", Path(self.vector_uri.removeprefix("file://"))))
        for what, path in places:
            if any(path.resolve().is_relative_to(vault) for vault in vaults):
                raise ConfigInvalid(
                    f"The {what} {path} lies inside the vault.",
                    "Keep it elsewhere: set OBSIDIAN_RAG_HOME or vector_store.path.",
                )


def load(
    flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ
) -> Config:
    """Read the settings.

    `flags` maps dotted keys ("embedding.provider") to values that win over everything.

    Raises:
        ConfigInvalid: the file, an environment variable or a flag cannot be used.
    """
    file = config_file(environ)
    overrides = {**dict(_read_environment(environ)), **(flags or {})}
    return Config(data_home(environ), file, Settings(), overrides).renewed(read_file(file))


def save(tree: Mapping[str, Any], file: Path) -> None:
    """Write settings to `file`, atomically, after checking that they can be used."""
    validate(tree, file)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(file, json.dumps(tree, indent=2, ensure_ascii=False) + "\n")


def setting_names(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    """The dotted name of every setting."""
    return (name for name, _ in setting_fields(model, prefix))


def setting_fields(
    model: type[BaseModel] = Settings, prefix: str = ""
) -> Iterator[tuple[str, FieldInfo]]:
    """Every setting with its dotted name."""
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from setting_fields(kind, f"{prefix}{name}.")
        else:
            yield prefix + (info.alias or name), info


def _read_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    known = {name.lower(): name for name in setting_names()}
    for name, text in sorted(environ.items()):
        key = name.removeprefix(ENV_PREFIX)
        if name.startswith(ENV_PREFIX) and key not in _PATH_VARIABLES:
            dotted = key.lower().replace("__", ".")
            if dotted in known:
                yield known[dotted], setting_value(known[dotted], text)
            elif "__" in key:
                hint = nearest_setting(dotted, list(known.values()))
                raise ConfigInvalid(
                    f"There is no setting for {name}.{hint}",
                    "Unset or rename the environment variable.",
                )


def setting_value(key: str, text: str) -> object:
    """Parse a setting written as text: JSON, or bare words for a text setting."""
    is_text = dict(setting_fields())[key].annotation in (str, str | None, SecretStr | None)
    if is_text and text != "null" and not text.startswith('"'):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def put_value(tree: dict[str, Any], key: str, value: object) -> None:
    """Set a dotted `key` in the file's tree."""
    *above, last = key.split(".")
    for part in above:
        below = tree.setdefault(part, {})
        if not isinstance(below, dict):
            raise ConfigInvalid(f"'{part}' must hold an object.", "Fix the config file.")
        tree = below
    tree[last] = value


def validate(
    tree: Mapping[str, Any], file: Path | None, overrides: Mapping[str, object] | None = None
) -> Settings:
    """Validate `tree`, the content of `file`, or just typed if `file` is None.

    Raises:
        ConfigInvalid: a setting is unknown or has a wrong value; the message names it.
    """
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
    raise refusal(problem, file, dict(setting_fields()), overrides or {})


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
