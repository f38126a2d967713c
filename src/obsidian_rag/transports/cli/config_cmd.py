"""config show, set and path."""

from typing import Annotated

import typer

from obsidian_rag import config
from obsidian_rag.transports.cli.output import JsonFlag, print_envelope, print_json, the_daemon

app = typer.Typer(no_args_is_help=True, help="Show and change settings", rich_markup_mode=None)


@app.command("show")
def show(json_output: JsonFlag = False) -> int:
    """Print every setting with its present value

    Example:  obsidian-rag config show
    """
    from obsidian_rag.tools import success

    settings = config.load().settings.model_dump(mode="json")
    if json_output:
        print_envelope(success(settings))
    else:
        print_json(settings)
    return 0


@app.command("set")
def set_(
    key: Annotated[str, typer.Argument(help="Dotted name, for example embedding.provider")],
    value: Annotated[str, typer.Argument(help="JSON, or a bare word")],
    json_output: JsonFlag = False,
) -> int:
    """Change one setting in the config file

    Example:  obsidian-rag config set embedding.provider ollama
    """
    from obsidian_rag.tools import success

    file = config.config_file()
    tree = config.read_file(file)
    config.set_value(tree, key, value)
    config.Config(config.data_home(), file, config.validate(tree, file))
    config.save(tree, file)
    if json_output:
        print_envelope(success({"key": key, "config": str(file)}))
    else:
        print(f"{key} is set in {file}")
        the_daemon(config.load())  # says so when one runs with the old settings
    return 0


@app.command("path")
def path(json_output: JsonFlag = False) -> int:
    """Print where the config file is

    Example:  $EDITOR "$(obsidian-rag config path)"
    """
    from obsidian_rag.tools import success

    if json_output:
        print_envelope(success({"config": str(config.config_file())}))
    else:
        print(config.config_file())
    return 0
