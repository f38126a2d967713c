"""uuid check and add: the ids in relations between notes, which survive renames."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument, NotFound, error_from
from obsidian_rag.transports.cli.backend import no_note, open_engine
from obsidian_rag.transports.cli.note_names import OptionalNote
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    command_group,
    counted,
    plain,
    print_data,
    print_done,
    print_sections,
    progress,
    stop_on_signals,
)
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.lazy import ids

if TYPE_CHECKING:
    from obsidian_rag.engine import Engine

app = command_group("Check the ids of notes, and add them")
_SHOWN = 20


@app.command("check")
def check(
    show_all: Annotated[bool, typer.Option("--all", help="List every note, not only 20")] = False,
    json_output: JsonFlag = False,
) -> int:
    """Report missing, broken and duplicate ids and dead relations

    Exits with 1 if something needs to be corrected.

    Example:  obsidian-rag uuid check
    """
    with open_engine() as opened, progress("notes") as show:
        found = ids.check_ids(opened, show)
    if json_output:
        print_data(ids.check_fields(found))
    else:
        most = None if show_all else _SHOWN
        print_sections(_sections(found), most, "`obsidian-rag uuid check --all`")
        _conclude(found)
    return 0 if found.is_clean else 1


@app.command("add")
def add(
    note: OptionalNote = None,
    every: Annotated[bool, typer.Option("--all", help="Every note without an id")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be written, and write nothing")
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Write an id into a note that has none, or into all of them

    The id becomes the first field of the frontmatter; all other bytes stay the same. Valid ids
    never change.

    Example:  obsidian-rag uuid add --all --dry-run
    """
    if every == (note is not None):
        raise InvalidArgument(
            "uuid add needs a note or --all, and not both.",
            "Try `obsidian-rag uuid add --all --dry-run`.",
        )
    with open_engine() as opened:
        if note is not None:
            return _add_one(opened, note, dry_run, json_output)
        return _add_all(opened, dry_run, json_output)


def _add_one(opened: "Engine", note: str, dry_run: bool, json_output: bool) -> int:
    try:
        path = ids.note_for_id(opened, note)
    except NotFound:
        raise no_note(note) from None
    (one,) = ids.add_ids(opened, [path], is_dry_run=dry_run)
    if one.error is not None:
        raise error_from(one.error["code"], one.error["message"], one.error["suggestion"])
    return print_done(ids.added_fields(one), _sentence(one), json_output)


def _add_all(opened: "Engine", dry_run: bool, json_output: bool) -> int:
    stop = stop_on_signals("note")
    with progress("notes") as show:
        paths = ids.notes_without_id(opened, show)
    done: list[ids.AddedId] = []
    adding = ids.add_ids(opened, paths, is_dry_run=dry_run)
    with progress("ids") as show:
        while not stop.is_set() and (one := next(adding, None)) is not None:
            done.append(one)
            show(len(done), len(paths))
    failed = [one for one in done if one.error is not None]
    if json_output:
        notes = [ids.added_fields(one) for one in done]
        print_data({"dry_run": dry_run, "interrupted": stop.is_set(), "notes": notes})
    else:
        _summarise(done, len(paths), dry_run)
    return 130 if stop.is_set() else 1 if failed else 0


def _summarise(done: "list[ids.AddedId]", wanted: int, dry_run: bool) -> None:
    good = [one for one in done if one.error is None]
    if dry_run:
        for one in good:
            print(_sentence(one))
    verb = "would get" if dry_run else "got"
    print(f"{counted(len(good), 'note')} {verb} an id" if wanted else "Every note has an id")
    for one in done:
        if one.error is not None:
            say(f"  failed: {one.error['message']} {one.error['suggestion']}")
    if len(done) < wanted:
        say(f"Stopped early; {counted(wanted - len(done), 'note')} stayed unchanged.")
    if good and not dry_run:
        say("Run `obsidian-rag sync`, unless the daemon is running.")


def _sentence(one: "ids.AddedId") -> str:
    said = {"added": "got the id", "existing": "has the id", "planned": "would get an id"}
    return f"{plain(one.path)}  {said[one.outcome.value]} {one.id}".rstrip()


def _sections(found: "ids.IdCheck") -> Iterator[tuple[str, Iterable[str]]]:
    report = found.report
    yield "No id", report.missing
    yield "Not a UUID v4", (f"{one.path}: {_value(one)}" for one in report.invalid)
    yield "Not in lower case", (f"{one.path}: {_value(one)}" for one in report.not_lower_case)
    yield (
        "Used twice; the first note keeps it",
        (f"{one.id}: {one.kept}, not {', '.join(one.others)}" for one in report.duplicates),
    )
    yield "Related to nothing", (f"{one.path}: {one.target}" for one in found.dangling)
    yield "Could not be read", (f"{path}: {reason}" for path, reason in found.unread)
    yield "In the older field `uuid`, which works too", report.legacy
    yield (
        "Relations in a circle, which are harmless",
        (" → ".join((*way, way[0])) for way in found.cycles or ()),
    )


def _value(one: Any) -> str:
    troubles: Mapping[str, str] = {
        "not_lower_case": "",
        "not_v4": "another version",
        "not_hyphenated": "without its hyphens",
        "not_a_uuid": "not a UUID",
        "not_text": "not text",
    }
    why = troubles[one.id.trouble]
    return f"{one.id.field}: {one.id.value}{f' ({why})' if why else ''}"


def _conclude(found: "ids.IdCheck") -> None:
    report = found.report
    if found.is_clean:
        print(f"{counted(report.notes, 'note')}, each with a valid id")
    else:
        good = report.notes - len(
            {
                *report.missing,
                *(one.path for one in (*report.invalid, *report.not_lower_case)),
                *(path for one in report.duplicates for path in one.others),
            }
        )
        verb = "has a valid id" if good == 1 else "have valid ids"
        print(f"{good:,} of {counted(report.notes, 'note')} {verb}")
    if report.missing:
        say("`obsidian-rag uuid add --all` writes the missing ones.")
    if found.cycles is None:
        say("Run `obsidian-rag sync` to check names and circles too.")
