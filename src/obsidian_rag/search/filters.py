"""Filters as conditions of the store, so that they hold before anything is ranked."""

from collections.abc import Iterable
from datetime import date

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes import SAID, first_day, keys_within, last_day, tag_keys
from obsidian_rag.search.answer import Filters
from obsidian_rag.search.query import DateRange
from obsidian_rag.store import Database, Links, Properties, quoted

_LEAST_SHARED = 0.02


def condition(filters: Filters, database: Database) -> str | None:
    """The SQL condition of the filters; None admits everything.

    Raises:
        InvalidArgument: a vault is not known.
    """
    parts = [
        *_directories(filters.directories),
        *(_tags(alternatives) for alternatives in filters.tags),
        *([within(filters.dates)] if filters.dates is not None else []),
        *_properties(filters, database),
        *_vaults(filters.vaults, database),
        *(f"strpos(lower(source_file), {quoted(part.lower())}) > 0" for part in filters.paths),
        # Written so: `is_private = false` takes three times as long.
        *([] if filters.with_private else ["NOT is_private"]),
    ]
    return " AND ".join(parts) if parts else None


def within(dates: DateRange) -> str:
    """Passages that belong to these days by a date of their note or heading; none without one."""
    return _having(keys_within(dates.first, dates.last))


def saying(dates: DateRange) -> str:
    """Passages whose text speaks of these days ("due 2026-06-13"), whatever they are dated."""
    return _having([f"{SAID}{key}" for key in keys_within(dates.first, dates.last)])


def undated() -> str:
    """Passages that belong to no date."""
    return "NOT is_dated"


def closeness(row_dates: Iterable[str], dates: DateRange) -> float:
    """How well a passage's best date fits these days: 1 if they are the same, 0 if outside.

    For a month, the note of that month comes before the notes of its days, and these before the
    note of the year. A note of a whole year is outside of a day in it.
    """
    first = date.fromisoformat(dates.first) if dates.first else date.min
    last = date.fromisoformat(dates.last) if dates.last else date.max
    return max((_overlap(one, first, last) for one in row_dates), default=0.0)


def _overlap(one: str, first: date, last: date) -> float:
    start, end = date.fromisoformat(first_day(one)), date.fromisoformat(last_day(one))
    shared = (min(end, last) - max(start, first)).days + 1
    own = (end - start).days + 1
    either = (max(end, last) - min(start, first)).days + 1
    is_inside = shared > _LEAST_SHARED * own
    return (shared / own + shared / either) / 2 if is_inside else 0.0


def _having(keys: list[str]) -> str:
    return f"array_has_any(dates, [{', '.join(map(quoted, keys))}])" if keys else "false"


def _directories(directories: tuple[str, ...]) -> list[str]:
    if not directories:
        return []
    tests = (f"starts_with(source_file, {quoted(f'{name}/')})" for name in directories)
    return [f"({' OR '.join(tests)})"]


def _tags(alternatives: tuple[str, ...]) -> str:
    keys = [key for tag in alternatives for key in tag_keys([tag])[-1:]]
    return f"array_has_any(tag_keys, [{', '.join(quoted(key) for key in keys)}])"


def _properties(filters: Filters, database: Database) -> Iterable[str]:
    known = Properties(database)
    for wanted in filters.properties:
        notes = known.notes_with(
            wanted.key,
            wanted.low,
            wanted.high,
            is_open_low=wanted.is_open_low,
            is_open_high=wanted.is_open_high,
        )
        if filters.may_tell is not None:
            notes = {
                link_id: [
                    path
                    for path, text in known.texts(link_id, paths).items()
                    if filters.may_tell(text)
                ]
                for link_id, paths in notes.items()
            }
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
            "Parameter 'vaults' names no vault that is known.", "Leave it out to search all vaults."
        )
    yield one_of("link_id", wanted)


def one_of(column: str, values: list[str]) -> str:
    """A condition that holds for these values; for none, one that never holds."""
    if not values:
        return "false"
    return f"{column} IN ({', '.join(quoted(value) for value in values)})"
