"""Turn filters into SQL conditions, applied before anything is ranked."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes import MENTIONED, first_day, keys_within, last_day, tag_keys
from obsidian_rag.search.answer import Filters
from obsidian_rag.search.query import DateRange, PropertyFilter, Query
from obsidian_rag.store import ChunkStore, Database, Links, Lookup, Properties, quoted

_MIN_OVERLAP = 0.02


def merge_filters(filters: Filters, query: Query) -> Filters:
    """The filters of a request and those written in its question; all of them apply."""
    return replace(
        filters,
        tags=(*filters.tags, *((tag,) for tag in query.tags)),
        paths=(*filters.paths, *query.paths),
        dates=_intersect(filters.dates, query.dates) if query.dates else filters.dates,
        properties=(*filters.properties, *query.properties),
        vaults=(*filters.vaults, *((query.vaults,) if query.vaults else ())),
    )


def _intersect(one: DateRange | None, other: DateRange) -> DateRange:
    if one is None:
        return other
    firsts = [day for day in (one.first, other.first) if day is not None]
    lasts = [day for day in (one.last, other.last) if day is not None]
    return DateRange(max(firsts, default=None), min(lasts, default=None))


def visible(filters: Filters) -> str | None:
    """SQL condition for the notes the caller may know about; None admits everything."""
    scope = filters.scope
    without: dict[str, list[str]] = {}
    for link_id, path in sorted(filters.without):
        without.setdefault(link_id, []).append(path)
    parts = [
        # `is_private = false` would take three times as long.
        *([] if filters.with_private else ["NOT is_private"]),
        *([] if scope.vaults is None else [one_of("link_id", list(scope.vaults))]),
        *([] if scope.folders is None else [below(scope.folders)]),
        *(f"NOT {_notes(link_id, paths)}" for link_id, paths in without.items()),
    ]
    return " AND ".join(parts) if parts else None


def condition(filters: Filters, database: Database) -> str | None:
    """SQL condition for the filters; None admits everything.

    Raises:
        InvalidArgument: a vault does not exist.
    """
    known = visible(filters)
    parts = [
        *([known] if known else []),
        *([below(filters.directories)] if filters.directories else []),
        *(_tags(alternatives) for alternatives in filters.tags),
        *([within(filters.dates)] if filters.dates is not None else []),
        *(_property(wanted, filters, database) for wanted in filters.properties),
        *(_vaults(filters, database) if filters.vaults else ()),
        *(f"strpos(lower(source_file), {quoted(part.lower())}) > 0" for part in filters.paths),
    ]
    return " AND ".join(parts) if parts else None


def fits_any(filters: Filters, chunks: ChunkStore, database: Database) -> bool:
    """Whether any passage matches."""
    return bool(Lookup(chunks).admitted(condition(filters, database), 1))


def within(dates: DateRange) -> str:
    """Passages dated within these days by their note or heading; undated ones do not match."""
    return _has_date_key(keys_within(dates.first, dates.last))


def mentioning(dates: DateRange) -> str:
    """Passages whose text mentions these days ("due 2026-06-13"), whatever their own date."""
    return _has_date_key([f"{MENTIONED}{key}" for key in keys_within(dates.first, dates.last)])


def undated() -> str:
    """Passages without a date."""
    return "NOT is_dated"


def closeness(row_dates: Iterable[str], dates: DateRange) -> float:
    """How well a passage's best date matches these days: 1 if equal, 0 if outside.

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
    is_inside = shared > _MIN_OVERLAP * own
    return (shared / own + shared / either) / 2 if is_inside else 0.0


def _has_date_key(keys: list[str]) -> str:
    return f"array_has_any(dates, [{', '.join(map(quoted, keys))}])" if keys else "false"


def below(folders: Iterable[str]) -> str:
    """Passages of notes below any of these folders."""
    tests = [f"starts_with(source_file, {quoted(f'{name}/' if name else '')})" for name in folders]
    return f"({' OR '.join(tests)})" if tests else "false"


def _tags(alternatives: tuple[str, ...]) -> str:
    keys = [key for tag in alternatives for key in tag_keys([tag])[-1:]]
    return f"array_has_any(tag_keys, [{', '.join(quoted(key) for key in keys)}])"


def _property(wanted: PropertyFilter, filters: Filters, database: Database) -> str:
    known = Properties(database)
    notes = known.notes_with(
        wanted.key,
        wanted.low,
        wanted.high,
        is_open_low=wanted.is_open_low,
        is_open_high=wanted.is_open_high,
    )
    if filters.may_reveal is not None:
        notes = {
            link_id: [
                path
                for path, text in known.texts(link_id, paths).items()
                if filters.may_reveal(text)
            ]
            for link_id, paths in notes.items()
        }
    tests = (_notes(link_id, paths) for link_id, paths in notes.items())
    return f"({' OR '.join(tests)})" if notes else "false"


def _notes(link_id: str, paths: list[str]) -> str:
    return f"(link_id = {quoted(link_id)} AND {one_of('source_file', paths)})"


def _vaults(filters: Filters, database: Database) -> Iterable[str]:
    """One condition per group of vault names and link ids; all of them apply."""
    links = Links(database).all()
    known = [link for link in links if filters.scope.admits_vault(link.link_id)]
    for names in filters.vaults:
        wanted = {name.casefold() for name in names}
        found = [link for link in known if {link.link_id, link.name.casefold()} & wanted]
        if len(found) < len(wanted):
            asked = " or ".join(f"'{name}'" for name in names)
            listed = ", ".join(f"'{link.name}'" for link in known)
            raise InvalidArgument(f"There is no vault called {asked}.", f"The vaults are {listed}.")
        yield one_of("link_id", [link.link_id for link in found])


def one_of(column: str, values: list[str]) -> str:
    """SQL condition that a column has one of these values; never true without values."""
    if not values:
        return "false"
    return f"{column} IN ({', '.join(quoted(value) for value in values)})"


def property_names(database: Database) -> list[tuple[str, int]]:
    """The names of all properties of indexed notes, most common first."""
    return Properties(database).names()
