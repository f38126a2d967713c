"""A sentence-embedding model on disk: which files, and how its vectors are made.

`embedding.json` says it; without one, the files of sentence-transformers are read; without
those, mean pooling over 512 tokens is assumed.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from obsidian_rag.errors import ConfigInvalid

Pooling = Literal["mean", "cls", "last"]
_MODEL_PLACES = ("model.onnx", "onnx/model.onnx")
_FIX = "Use a folder with model.onnx, tokenizer.json and, best, embedding.json."


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Everything needed to run a model, read but not yet loaded."""

    name: str
    model_file: Path
    tokenizer_file: Path
    pooling: Pooling
    query_prefix: str
    document_prefix: str
    max_tokens: int
    normalize: bool
    dimensions: int | None

    @property
    def weight_files(self) -> list[Path]:
        """The model and the files beside it that hold weights too large for it."""
        beside = self.model_file.parent.iterdir()
        data = [file for file in beside if file.name.startswith(("model.onnx_", "model.onnx."))]
        return [self.model_file, *sorted(data)]

    def settings_text(self, dimensions: int) -> str:
        """The embedding.json that describes this model."""
        return json.dumps(
            {
                "name": self.name,
                "pooling": self.pooling,
                "query_prefix": self.query_prefix,
                "document_prefix": self.document_prefix,
                "max_tokens": self.max_tokens,
                "normalize": self.normalize,
                "dimensions": dimensions,
            },
            indent=2,
        )


def read_model_folder(folder: Path) -> ModelFolder:
    """What a folder says of its model.

    Raises:
        ConfigInvalid: a file is missing or says something impossible.
    """
    if not folder.is_dir():
        raise ConfigInvalid(f"There is no model folder {folder}.", _FIX)
    model_files = [folder / place for place in _MODEL_PLACES if (folder / place).is_file()]
    if not model_files:
        raise ConfigInvalid(f"The model folder {folder} has no model.onnx.", _FIX)
    if not (folder / "tokenizer.json").is_file():
        raise ConfigInvalid(f"The model folder {folder} has no tokenizer.json.", _FIX)
    said = _read(folder / "embedding.json") or _from_sentence_transformers(folder)
    return ModelFolder(
        name=_text(said, "name", folder.name),
        model_file=model_files[0],
        tokenizer_file=folder / "tokenizer.json",
        pooling=_pooling(said, folder),
        query_prefix=_text(said, "query_prefix", ""),
        document_prefix=_text(said, "document_prefix", ""),
        max_tokens=_number(said, "max_tokens") or 512,
        normalize=said.get("normalize", True) is not False,
        dimensions=_number(said, "dimensions"),
    )


def _from_sentence_transformers(folder: Path) -> dict[str, Any]:
    said: dict[str, Any] = {}
    pooling = _read(folder / "1_Pooling" / "config.json")
    if pooling.get("pooling_mode_cls_token"):
        said["pooling"] = "cls"
    elif pooling.get("pooling_mode_lasttoken"):
        said["pooling"] = "last"
    said["max_tokens"] = _read(folder / "sentence_bert_config.json").get("max_seq_length")
    prompts = _read(folder / "config_sentence_transformers.json").get("prompts")
    if isinstance(prompts, dict):
        said["query_prefix"] = prompts.get("query")
        said["document_prefix"] = prompts.get("document", prompts.get("passage"))
    return said


def _read(file: Path) -> dict[str, Any]:
    try:
        said = json.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigInvalid(f"{file} cannot be read: {error}.", _FIX) from error
    if not isinstance(said, dict):
        raise ConfigInvalid(f"{file} must hold one JSON object.", _FIX)
    return said


def _pooling(said: dict[str, Any], folder: Path) -> Pooling:
    asked = said.get("pooling", "mean")
    for pooling in get_args(Pooling):
        if asked == pooling:
            known: Pooling = pooling
            return known
    raise ConfigInvalid(f"{folder}: there is no pooling '{asked}'.", "Use mean, cls or last.")


def _text(said: dict[str, Any], key: str, default: str) -> str:
    value = said.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ConfigInvalid(f"'{key}' of the model must be text.", _FIX)
    return value


def _number(said: dict[str, Any], key: str) -> int | None:
    value = said.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 4:
        raise ConfigInvalid(f"'{key}' of the model must be a whole number above 3.", _FIX)
    return value
