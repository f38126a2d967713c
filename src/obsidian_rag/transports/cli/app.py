"""The command tree, and the outer edge where every failure becomes a message."""

import contextlib
import functools
import sys
from datetime import datetime
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from obsidian_rag import __version__
from obsidian_rag.config import data_home
from obsidian_rag.errors import (
    InvalidArgument,
    ObsidianRagError,
    disk_fault,
    is_denied,
    is_disk_full,
    unexpected,
)
from obsidian_rag.process import begin_process, discreet_traceback
from obsidian_rag.transports.cli import (
    autostart_cmd,
    config_cmd,
    doctor_cmd,
    eval_cmd,
    index_cmd,
    init_cmd,
    link_cmd,
    livesync_cmd,
    mcp_cmd,
    memory_cmd,
    model_cmd,
    open_cmd,
    read_cmd,
    relate_cmd,
    related_cmd,
    search_cmd,
    serve_cmd,
    status_cmd,
    suggest_cmd,
    token_cmd,
    uuid_cmd,
)
from obsidian_rag.transports.cli.output import print_failure
from obsidian_rag.transports.cli.streams import safe_streams, say

app = typer.Typer(
    name="obsidian-rag",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("search")(search_cmd.search)
app.command("init")(init_cmd.init)
app.command("index")(index_cmd.index)
app.command("sync")(index_cmd.sync)
app.command("reindex")(index_cmd.reindex)
app.command("status")(status_cmd.status)
app.command("read")(read_cmd.read)
app.command("related")(related_cmd.related)
app.command("suggest")(suggest_cmd.suggest)
app.command("relate")(relate_cmd.relate)
app.add_typer(link_cmd.app, name="link")
app.add_typer(uuid_cmd.app, name="uuid")
app.add_typer(memory_cmd.app, name="memory")
app.add_typer(livesync_cmd.app, name="livesync")
app.command("serve")(serve_cmd.serve)
app.command("open")(open_cmd.open_page)
app.command("mcp")(mcp_cmd.mcp)
app.add_typer(token_cmd.app, name="token")
app.add_typer(autostart_cmd.app, name="service")
app.command("doctor")(doctor_cmd.doctor)
app.command("eval")(eval_cmd.evaluate)
app.add_typer(config_cmd.app, name="config")
app.add_typer(model_cmd.app, name="model")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"obsidian-rag {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    """Ask your notes: search an Obsidian vault by meaning and by word, on this machine.

    Start with:  obsidian-rag init --vault ~/Notes && obsidian-rag index
    """


def run() -> int:
    """Run the command that was typed; returns the exit code."""
    begin_process()
    with safe_streams():
        return _run()


@functools.cache
def command_tree() -> Any:
    """The commands, built once: that takes 25 ms, and tests run many in one process."""
    return typer.main.get_command(app)


def _run() -> int:
    try:
        _check_arguments(sys.argv)
        outcome = command_tree()(prog_name="obsidian-rag", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except typer.Exit as ended:
        return ended.exit_code
    except TyperException as error:
        if error.format_message().startswith("Usage:"):  # called without a command
            say(error.format_message())
            return 2
        print_failure(InvalidArgument(error.format_message(), "See `obsidian-rag --help`."))
        return 2
    except (typer.Abort, KeyboardInterrupt):
        say("Interrupted.")
        return 130
    except ObsidianRagError as error:
        print_failure(error)
        return error.exit_code
    except SystemExit as ended:
        # Typer exits like this when the reader of our output has gone, which is not a failure.
        is_reader_gone = isinstance(ended.__context__, BrokenPipeError)
        return 0 if is_reader_gone or ended.code in (None, 0) else 2
    except Exception as error:  # noqa: BLE001  (the outer edge: a traceback is for the log)
        print_failure(_to_domain_error(error))
        return 2


def _check_arguments(arguments: list[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode(errors="surrogateescape").decode(errors="replace")
            raise InvalidArgument(
                f"'{shown}' is not valid UTF-8.", "Set your terminal to UTF-8 and type it again."
            ) from None


def _to_domain_error(error: Exception) -> ObsidianRagError:
    """The error to report for an unexpected exception, whose text may quote a note."""
    if isinstance(error, OSError) and (is_denied(error) or is_disk_full(error)):
        return disk_fault(error, error.filename or "a file", verb="used")
    log = data_home() / "logs" / "crash.log"
    hint = "Please report it with the command you ran; no log of it could be written."
    with contextlib.suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"\n{datetime.now().isoformat()} {sys.argv[1:2]}\n")
            stream.write(discreet_traceback(error) + "\n")
        hint = f"The details are in {log}; please report them with the command you ran."
    return unexpected(error, hint)
