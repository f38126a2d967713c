"""Filters as conditions of the store, so that they hold before anything is ranked."""

from collections.abc import Iterable
from datetime import date

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes import SAID, first_day, keys_within, last_day, tag_keys
from obsidian_rag.search.answer import Filters
from obsidian_rag.search.query import DateRange
from obsidian_rag.store import ChunkStore, Database, Links, Lookup, Properties, quoted

_LEAST_SHARED = 0.02


def visible(filters: Filters) -> str | None:
    """The SQL condition of what the caller may know of at all; None admits everything."""
    scope = filters.scope
    parts = [
        # Written so: `is_private = false` takes three times as long.
        *([] if filters.with_private else ["NOT is_private"]),
        *([] if scope.vaults is None else [one_of("link_id", list(scope.vaults))]),
        *([] if scope.folders is None else [below(scope.folders)]),
    ]
    return " AND ".join(parts) if parts else None


def condition(filters: Filters, database: Database) -> str | None:
    """The SQL condition of the filters; None admits everything.

    Raises:
        InvalidArgument: a vault is not known.
    """
    known = visible(filters)
    parts = [
        *([known] if known else []),
        *([below(filters.directories)] if filters.directories else []),
        *(_tags(alternatives) for alternatives in filters.tags),
        *([within(filters.dates)] if filters.dates is not None else []),
        *_properties(filters, database),
        *_vaults(filters, database),
        *(f"strpos(lower(source_file), {quoted(part.lower())}) > 0" for part in filters.paths),
    ]
    return " AND ".join(parts) if parts else None


def fits_any(filters: Filters, chunks: ChunkStore, database: Database) -> bool:
    """Whether any passage fits."""
    return bool(Lookup(chunks).admitted(condition(filters, database), 1))


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


def below(folders: Iterable[str]) -> str:
    """Passages of notes below any of these folders."""
    tests = [f"starts_with(source_file, {quoted(f'{name}/' if name else '')})" for name in folders]
    return f"({' OR '.join(tests)})" if tests else "false"


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


def _vaults(filters: Filters, database: Database) -> Iterable[str]:
    """Each group of names and link ids admits the vaults it names; all groups must."""
    links = Links(database).all() if filters.vaults else []
    known = [link for link in links if filters.scope.admits_vault(link.link_id)]
    for names in filters.vaults:
        wanted = {name.casefold() for name in names}
        found = [link for link in known if {link.link_id, link.name.casefold()} & wanted]
        if len(found) < len(wanted):
            listed = ", ".join(f"'{link.name}'" for link in known)
            raise InvalidArgument(
                f"No vault is called so: {', '.join(names)}.", f"The vaults are {listed}."
            )
        yield one_of("link_id", [link.link_id for link in found])


def one_of(column: str, values: list[str]) -> str:
    """A condition that holds for these values; for none, one that never holds."""
    if not values:
        return "false"
    return f"{column} IN ({', '.join(quoted(value) for value in values)})"


def property_names(database: Database) -> list[tuple[str, int]]:
    """The names of all properties of indexed notes, the commonest first."""
    return Properties(database).names()
