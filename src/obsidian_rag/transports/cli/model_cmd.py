"""model list, add, get and remove: embedding models in ONNX form."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.config import load
from obsidian_rag.transports.cli.output import JsonFlag, print_envelope

if TYPE_CHECKING:
    from obsidian_rag.engine import ModelInfo

app = typer.Typer(
    no_args_is_help=True, help="Manage embedding models in ONNX form", rich_markup_mode=None
)


@app.command("list")
def list_(json_output: JsonFlag = False) -> int:
    """List the models that were added

    Example:  obsidian-rag model list
    """
    from obsidian_rag.engine import list_models
    from obsidian_rag.tools import success

    models = list_models(load().home)
    if json_output:
        print_envelope(success({"models": [_fields(model) for model in models]}))
    elif not models:
        print("No models yet; `obsidian-rag model add FOLDER` adds one.", file=sys.stderr)
    else:
        for model in models:
            _show(model)
    return 0


@app.command("add")
def add(
    folder: Annotated[Path, typer.Argument(help="Folder with model.onnx and tokenizer.json")],
    name: Annotated[str | None, typer.Option("--name", help="Name to use in the settings")] = None,
    json_output: JsonFlag = False,
) -> int:
    """Copy a model folder into the data folder, after trying it

    Example:  obsidian-rag model add ./e5-small --name e5-small
    """
    from obsidian_rag.engine import add_model

    return _added(add_model(folder, load().home, name), json_output)


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A known model, for example e5-small")],
    json_output: JsonFlag = False,
) -> int:
    """Download a known model from the model hub, over the internet

    Example:  obsidian-rag model get e5-small
    """
    from obsidian_rag.engine import get_model

    def show(file: str, done: int, total: int | None) -> None:
        size = f"{done / 1e6:.0f}" + (f" of {total / 1e6:.0f}" if total else "")
        print(f"\r{file}: {size} MB ", end="", file=sys.stderr)

    model = get_model(name, load().home, show if sys.stderr.isatty() else None)
    return _added(model, json_output)


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="Name of an added model")],
    json_output: JsonFlag = False,
) -> int:
    """Delete a model from the data folder

    Example:  obsidian-rag model remove e5-small
    """
    from obsidian_rag.engine import remove_model
    from obsidian_rag.tools import success

    remove_model(name, load().home)
    if json_output:
        print_envelope(success({"removed": name}))
    else:
        print(f"{name} is removed")
    return 0


def _added(model: "ModelInfo", json_output: bool) -> int:
    from obsidian_rag.tools import success

    if json_output:
        print_envelope(success(_fields(model)))
        return 0
    _show(model)
    print(
        f"\nUse it: obsidian-rag config set embedding.provider onnx"
        f" && obsidian-rag config set embedding.model {model.name} && obsidian-rag reindex",
        file=sys.stderr,
    )
    return 0


def _fields(model: "ModelInfo") -> dict[str, object]:
    return {**asdict(model), "folder": str(model.folder)}


def _show(model: "ModelInfo") -> None:
    print(f"{model.name}  {model.dimensions} dimensions, {model.size_bytes / 1e6:.0f} MB")
