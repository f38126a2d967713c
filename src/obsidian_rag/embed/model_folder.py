"""A sentence-embedding model on disk: its files, and how its vectors are made.

Read from `embedding.json`, or else from the files of sentence-transformers; without either, mean
pooling over 512 tokens is assumed.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from obsidian_rag.errors import ConfigInvalid

WEIGHTS_FILE = "weights.safetensors"
Pooling = Literal["mean", "cls", "last"]
# Dividing by the square root of the length changes only the length of the mean vector.
_POOLING_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_weightedmean_tokens": "weighted mean",
}
_MODEL_PLACES = ("model.onnx", "onnx/model.onnx")
_WEIGHT_FILES = ("model.onnx_", "model.onnx.", WEIGHTS_FILE)
_FIX = "Use a folder with model.onnx, tokenizer.json and, best, embedding.json."


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What is needed to load and run a model."""

    name: str
    model_file: Path
    tokenizer_file: Path
    pooling: Pooling
    query_prefix: str
    document_prefix: str
    max_tokens: int
    normalize: bool
    dimensions: int | None
    max_windows: int | None = None

    @property
    def weight_files(self) -> list[Path]:
        """The model file, and the files next to it that hold its external weights."""
        beside = self.model_file.parent.iterdir()
        data = [file for file in beside if file.name.startswith(_WEIGHT_FILES)]
        return [self.model_file, *sorted(data)]

    def settings_text(self, dimensions: int) -> str:
        """The embedding.json that describes this model."""
        config: dict[str, object] = {
            "name": self.name,
            "pooling": self.pooling,
            "query_prefix": self.query_prefix,
            "document_prefix": self.document_prefix,
            "max_tokens": self.max_tokens,
            "normalize": self.normalize,
            "dimensions": dimensions,
        }
        if self.max_windows is not None:
            config["max_windows"] = self.max_windows
        return json.dumps(config, indent=2)


def read_model_folder(folder: Path) -> ModelFolder:
    """Read the description of a model from its folder.

    Raises:
        ConfigInvalid: a file is missing or has invalid values.
    """
    if not folder.is_dir():
        raise ConfigInvalid(f"No model folder {folder}.", _FIX)
    model_files = [folder / place for place in _MODEL_PLACES if (folder / place).is_file()]
    if not model_files:
        raise ConfigInvalid(f"The model folder {folder} has no model.onnx.", _FIX)
    if not (folder / "tokenizer.json").is_file():
        raise ConfigInvalid(f"The model folder {folder} has no tokenizer.json.", _FIX)
    config = _read(folder / "embedding.json") or _from_sentence_transformers(folder)
    return ModelFolder(
        name=_text(config, "name", folder.name),
        model_file=model_files[0],
        tokenizer_file=folder / "tokenizer.json",
        pooling=_pooling(config, folder),
        query_prefix=_text(config, "query_prefix", ""),
        document_prefix=_text(config, "document_prefix", ""),
        max_tokens=_number(config, "max_tokens") or 512,
        normalize=config.get("normalize", True) is not False,
        dimensions=_number(config, "dimensions"),
        max_windows=_number(config, "max_windows", least=1),
    )


def _from_sentence_transformers(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = {}
    pooling = _read(folder / "1_Pooling" / "config.json")
    modes = [name for mode, name in _POOLING_MODES.items() if pooling.get(mode)]
    if modes:
        config["pooling"] = " and ".join(modes)
    config["max_tokens"] = _read(folder / "sentence_bert_config.json").get("max_seq_length")
    prompts = _read(folder / "config_sentence_transformers.json").get("prompts")
    if isinstance(prompts, dict):
        config["query_prefix"] = prompts.get("query")
        config["document_prefix"] = prompts.get("document", prompts.get("passage"))
    return config


def _read(file: Path) -> dict[str, Any]:
    try:
        config = json.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigInvalid(f"{file} cannot be read: {error}.", _FIX) from error
    if not isinstance(config, dict):
        raise ConfigInvalid(f"{file} must hold one JSON object.", _FIX)
    return config


def _pooling(config: dict[str, Any], folder: Path) -> Pooling:
    asked = config.get("pooling", "mean")
    for pooling in get_args(Pooling):
        if asked == pooling:
            known: Pooling = pooling
            return known
    raise ConfigInvalid(f"{folder}: unknown pooling '{asked}'.", "Use mean, cls or last.")


def _text(config: dict[str, Any], key: str, default: str) -> str:
    value = config.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ConfigInvalid(f"'{key}' of the model must be text.", _FIX)
    return value


def _number(config: dict[str, Any], key: str, least: int = 4) -> int | None:
    value = config.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigInvalid(f"'{key}' of the model must be {least} or a larger number.", _FIX)
    return value
