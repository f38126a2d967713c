"""The sections of a note as its author marked them, and which of them a caller may see.

Threat: an agent asks for a few lines, a heading or a word at a time, and collects a withheld text
piece by piece. So a section is judged with all its text, the headings above it and the note's own
tags, however little of it is requested. What other places show of a withheld section (its heading
in a path, its tags, a title taken from it) is withheld too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise

from obsidian_rag.engine import Engine
from obsidian_rag.errors import IndexNotFound
from obsidian_rag.notes import (
    LINE_END,
    MARKS,
    Heading,
    Note,
    RagPolicy,
    file_title,
    kind_of,
    parse_date,
)
from obsidian_rag.store import FoundRow
from obsidian_rag.tools.access import with_known_vaults
from obsidian_rag.tools.guard import (
    AGENT,
    Caller,
    CurrentPolicies,
    GuardSettings,
    Verdict,
    guard_settings,
    judge,
)
from obsidian_rag.tools.note_files import note_files

_TAG = re.compile(rf"#([\w{MARKS}\u200c\u200d/-]+)")
_TAG_LINE = re.compile(r"^tags?: (.*)$", re.MULTILINE)
_TAG_WORD = re.compile(rf"[\w{MARKS}\u200c\u200d/-]+")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of a note under one heading, both included, or those before the first heading."""

    first: int
    last: int
    heading_path: tuple[str, ...]
    name: str | None
    text: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class NoteSections:
    """A note as one caller may see it."""

    path: str
    title: str
    sections: tuple[Section, ...]
    is_private: bool
    settings: GuardSettings
    caller: Caller
    # Tags of the whole note; they count for every section.
    note_tags: tuple[str, ...] = field(default=())

    def verdict(self, first: int, last: int) -> Verdict:
        """The strictest verdict of the sections that these lines touch."""
        return combine(
            self._judge(section)
            for section in self.sections
            if section.first <= last and first <= section.last
        )

    def whole(self) -> Verdict:
        """The verdict for the whole note."""
        return combine(verdict for _, verdict in self._verdicts)

    def hides(self, first: int, last: int) -> bool:
        """Whether these lines are withheld from the caller."""
        return self.caller.misses(self.verdict(first, last))

    @cached_property
    def hides_any(self) -> bool:
        """Whether a part of the note is withheld from the caller."""
        return self._may_hide and self.caller.misses(self.whole())

    def open_headings(self, path: Sequence[str]) -> list[str]:
        """A heading path without the headings of withheld sections."""
        steps = (tuple(path[:length]) for length in range(1, len(path) + 1))
        return [step[-1] for step in steps if step not in self._hidden_paths]

    def open_title(self) -> str:
        """The title, or the file name if the title may come from a withheld section."""
        if not self.hides_any:
            return self.title
        shown = {path[-1] for path in self._open_paths} - {path[-1] for path in self._hidden_paths}
        for section, verdict in self._verdicts:
            if not self.caller.misses(verdict):
                shown |= set(_HEADING.findall(section.text))
        return self.title if self.title in shown else file_title(self.path)

    def open_tags(self, tags: Iterable[str]) -> list[str]:
        """Those of these tags that appear in a part of the note that the caller may see."""
        if not self.hides_any:
            return list(tags)
        own = {tag.casefold() for tag in self.note_tags}
        shown = {
            tag.casefold()
            for section, verdict in self._verdicts
            if not self.caller.misses(verdict)
            for tag in section.tags
        }
        shown = shown - own if self.hides_properties else shown | own
        return [tag for tag in tags if f"#{tag.lstrip('#')}".casefold() in shown]

    def open_date(self, date: str | None) -> str | None:
        """The note's date, unless it comes from withheld properties."""
        return parse_date(self.path, {}) if self.hides_properties else date

    @cached_property
    def _may_hide(self) -> bool:
        """Whether anything could be withheld; if not, judging the sections is skipped."""
        return self.caller.may_miss(self.settings, is_private=self.is_private)

    @cached_property
    def _verdicts(self) -> tuple[tuple[Section, Verdict], ...]:
        return tuple((section, self._judge(section)) for section in self.sections)

    @cached_property
    def _judge(self) -> Callable[[Section], Verdict]:
        own = () if self.title == file_title(self.path) else (self.title,)
        return cache(
            lambda section: judge(
                section.text,
                section.name,
                (*own, *section.heading_path),
                (*self.note_tags, *section.tags),
                self.is_private,
                self.settings,
            )
        )

    @cached_property
    def hides_properties(self) -> bool:
        """Whether the first section is withheld, which contains the properties."""
        return bool(self._verdicts) and self.caller.misses(self._verdicts[0][1])

    @cached_property
    def _hidden_paths(self) -> frozenset[tuple[str, ...]]:
        if not self._may_hide:
            return frozenset()
        judged = ((s, v) for s, v in self._verdicts if s.heading_path and self.caller.misses(v))
        return frozenset(section.heading_path for section, _ in judged)

    @cached_property
    def _open_paths(self) -> frozenset[tuple[str, ...]]:
        # With the parents: a heading without text of its own appears only in the paths below it.
        paths = {
            section.heading_path[:depth]
            for section, verdict in self._verdicts
            if not self.caller.misses(verdict)
            for depth in range(1, len(section.heading_path) + 1)
        }
        return frozenset(paths) - self._hidden_paths


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine verdicts: all categories, withheld if any is."""
    listed = list(verdicts)
    categories = dict.fromkeys(name for verdict in listed for name in verdict.categories)
    return Verdict(tuple(categories), any(verdict.is_withheld for verdict in listed))


def sections_of_note(
    note: Note, text: str, settings: GuardSettings, caller: Caller
) -> NoteSections:
    """The sections of a note from its file; the properties are the first one."""
    lines = split_note(text)
    is_plain_text = kind_of(note.path).is_plain_text
    sections = tuple((_split_at_headings if is_plain_text else _as_single_section)(note, lines))
    is_private = note.policy is not RagPolicy.INDEX
    own = note.frontmatter_tags
    return NoteSections(note.path, note.title, sections, is_private, settings, caller, own)


def sections_of_rows(
    rows: Sequence[FoundRow], properties: str, settings: GuardSettings, caller: Caller
) -> NoteSections:
    """The sections of a note from the index: adjacent chunks under one heading are one."""
    groups: list[list[FoundRow]] = []
    for row in rows:
        is_same = groups and (
            (groups[-1][-1].heading_path, groups[-1][-1].section) == (row.heading_path, row.section)
        )
        if is_same:
            groups[-1].append(row)
        else:
            groups.append([row])
    own = set(_TAG_WORD.findall(" ".join(_TAG_LINE.findall(properties))))
    return NoteSections(
        rows[0].source_file,
        rows[0].title,
        (Section(0, 0, (), None, properties, ()), *(_merge_rows(group) for group in groups)),
        any(row.is_private for row in rows),
        settings,
        caller,
        tuple(tag for tag in rows[0].tags if tag.lstrip("#").casefold() in own),
    )


def listed_notes(
    engine: Engine, after: str, limit: int, caller: Caller = AGENT, vault: str | None = None
) -> tuple[list[tuple[str, str]], str | None]:
    """Path and name of the next notes of a vault that the caller may know of.

    Also the path after which to continue, if there are more. A title is text of the note: if
    sensitive text is withheld, the file name is used instead.
    """
    caller = with_known_vaults(engine, caller)
    files = note_files(engine, vault, caller.scope)
    try:
        engine.follow_index()
        found = engine.chunks.look_up(lambda: files.listed(after, limit + 1))
    except IndexNotFound:
        return [], None
    titles = {note.path: note.title for note in found[:limit]}
    is_careful = guard_settings(engine).is_withholding
    link_id = engine.vaults.one(vault, caller.scope).link_id
    hidden = CurrentPolicies(engine, caller).left_out((link_id, path) for path in titles)
    names = [
        (path, file_title(path) if is_careful else title)
        for path, title in titles.items()
        if (link_id, path) not in hidden
    ]
    return names, found[limit - 1].path if len(found) > limit else None


def media_type(path: str) -> str:
    """The media type of a note's file."""
    return kind_of(path).media_type


def split_note(text: str) -> list[str]:
    """The lines of a note's file; a final line end does not start another line."""
    lines = LINE_END.split(text)
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def path_to(headings: Sequence[Heading], position: int) -> tuple[str, ...]:
    """The headings above one of them, outermost first, and itself; tag lines are the lowest."""
    path = [headings[position].text]
    level = headings[position].level or 7
    for head in reversed(headings[:position]):
        if head.level and head.level < level:
            path.append(head.text)
            level = head.level
    return tuple(reversed(path))


def section_end(headings: Sequence[Heading], position: int, total: int) -> int:
    """The last line under a heading: up to the next one of its level or above.

    A section under a tag line ends at any heading.
    """
    level = headings[position].level
    for head in headings[position + 1 :]:
        if not level or 0 < head.level <= level:
            return head.line - 1
    return total


def _split_at_headings(note: Note, lines: Sequence[str]) -> Iterator[Section]:
    starts = [head.line for head in note.headings]
    if note.body_line > 1:
        yield Section(1, note.body_line - 1, (), None, "\n".join(lines[: note.body_line - 1]), ())
    before = (starts[0] if starts else len(lines) + 1) - 1
    if note.body_line <= before:
        text = "\n".join(lines[note.body_line - 1 : before])
        yield Section(note.body_line, before, (), None, text, _tags(note, text))
    for position, (start, following) in enumerate(pairwise([*starts, len(lines) + 1])):
        path = path_to(note.headings, position)
        text = "\n".join(lines[start - 1 : following - 1])
        yield Section(start, following - 1, path, path[-1], text, _tags(note, text))


def _as_single_section(note: Note, lines: Sequence[str]) -> Iterator[Section]:
    # Canvas texts are JSON strings, where an escaped line end would hide the word after it.
    heads = tuple(head.text for head in note.headings)
    text = "\n".join((*heads, *lines)).replace("\\n", "\n")
    yield Section(1, max(1, len(lines)), (), None, text, (*note.tags, *(f"#{h}" for h in heads)))


def _tags(note: Note, text: str) -> tuple[str, ...]:
    """Those of the note's tags that appear in this text."""
    found = {tag.casefold() for tag in _TAG.findall(text)} if "#" in text else set()
    return tuple(tag for tag in note.tags if tag.lstrip("#").casefold() in found)


def _merge_rows(rows: Sequence[FoundRow]) -> Section:
    first = rows[0]
    return Section(
        min(row.start_line for row in rows),
        max(row.end_line for row in rows),
        first.heading_path,
        first.section,
        "\n".join(part for row in rows for part in (row.chunk_text, row.words_only) if part),
        tuple(dict.fromkeys(tag for row in rows for tag in row.tags)),
    )
