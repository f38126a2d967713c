"""The transformers in the data folder, and what the settings use them for."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from obsidian_rag import embed
from obsidian_rag.config import Config

ModelUse = Literal["embedding", "meaning"]
# File name, bytes done, bytes in total if known.
OnProgress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Model(embed.ModelInfo):
    """An installed model; `used_for` is None when the settings do not name it."""

    used_for: ModelUse | None


class Models:
    """The models of the data folder."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def all(self) -> list[Model]:
        """All installed models, by name."""
        return [self._model(found) for found in embed.list_models(self._config.home)]

    def find(self, name: str) -> Model | None:
        """The installed model of this name."""
        return next((model for model in self.all() if model.name == name), None)

    def use_of(self, name: str) -> ModelUse | None:
        """What the settings use a model of this name for, installed or not."""
        return embed.model_use(self._config.settings, name)

    def add(self, folder: Path, name: str | None = None) -> Model:
        """Copy a model folder into the data folder, after checking that it embeds.

        Raises:
            ConfigInvalid: the folder is not a usable model.
            InvalidArgument: the name is taken or has no usable character.
        """
        return self._model(embed.add_model(folder, self._config.home, name))

    def get(self, name: str, on_progress: OnProgress | None = None) -> Model:
        """Download a known model into the data folder; sends no user text.

        Raises:
            NotFound: no known model has that name.
            ProviderFailed: the download failed, or its content is not as expected.
        """
        return self._model(embed.get_model(name, self._config.home, on_progress))

    def remove(self, name: str) -> None:
        """Delete a model.

        Raises:
            NotFound: no model has that name.
        """
        embed.remove_model(name, self._config.home)

    def _model(self, found: embed.ModelInfo) -> Model:
        return Model(**asdict(found), used_for=self.use_of(found.name))
