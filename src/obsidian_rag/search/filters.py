"""Filters as conditions of the store, so that they hold before anything is ranked."""

from collections.abc import Iterable

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes import tag_keys
from obsidian_rag.search.answer import Filters
from obsidian_rag.search.query import DateRange
from obsidian_rag.store import Database, Links, Properties, quoted


def condition(filters: Filters, database: Database) -> str | None:
    """The SQL condition of the filters; None admits everything.

    Raises:
        InvalidArgument: a vault is not known.
    """
    parts = [
        *_directories(filters.directories),
        *(_tags(alternatives) for alternatives in filters.tags),
        *_dates(filters.dates),
        *_properties(filters, database),
        *_vaults(filters.vaults, database),
        *(f"strpos(lower(source_file), {quoted(part.lower())}) > 0" for part in filters.paths),
    ]
    return " AND ".join(parts) if parts else None


def within(dates: DateRange) -> str:
    """Notes of these days, and notes that have no date."""
    return f"(date IS NULL OR ({' AND '.join(_dates(dates))}))"


def _directories(directories: tuple[str, ...]) -> list[str]:
    if not directories:
        return []
    tests = (f"starts_with(source_file, {quoted(f'{name}/')})" for name in directories)
    return [f"({' OR '.join(tests)})"]


def _tags(alternatives: tuple[str, ...]) -> str:
    keys = [key for tag in alternatives for key in tag_keys([tag])[-1:]]
    return f"array_has_any(tag_keys, [{', '.join(quoted(key) for key in keys)}])"


def _dates(dates: DateRange | None) -> list[str]:
    if dates is None:
        return []
    found = []
    if dates.first is not None:
        found.append(f"date >= {quoted(dates.first)}")
    if dates.last is not None:
        found.append(f"date <= {quoted(dates.last)}")
    return found


def _properties(filters: Filters, database: Database) -> Iterable[str]:
    for wanted in filters.properties:
        notes = Properties(database).notes_with(
            wanted.key,
            wanted.low,
            wanted.high,
            is_open_low=wanted.is_open_low,
            is_open_high=wanted.is_open_high,
        )
        tests = (
            f"(link_id = {quoted(link_id)} AND {one_of('source_file', paths)})"
            for link_id, paths in notes.items()
        )
        yield f"({' OR '.join(tests)})" if notes else "false"


def _vaults(vaults: tuple[str, ...], database: Database) -> Iterable[str]:
    if not vaults:
        return
    known = {link.link_id: link.root_path.name for link in Links(database).all()}
    wanted = [
        link_id
        for link_id, name in known.items()
        if link_id in vaults or name.casefold() in {vault.casefold() for vault in vaults}
    ]
    if not wanted:
        raise InvalidArgument(
            "vaults: no vault of that name is known.", "Leave it out to search all vaults."
        )
    yield one_of("link_id", wanted)


def one_of(column: str, values: list[str]) -> str:
    """A condition that holds for these values; for none, one that never holds."""
    if not values:
        return "false"
    return f"{column} IN ({', '.join(quoted(value) for value in values)})"
