"""Decides who may see what, and which facts to offer for remembering.

Threat: an agent shows or sends what its user meant to keep private; a note may even ask it to.
So the decision depends on settings and properties of the note, never on what the agent believes,
and if two settings disagree, the stricter one wins.

A passage is sensitive if it is

- in a category of `security.require_confirmation_for`: the patterns of `memory.patterns` with the
  same name (`financial_debt` means the category `financial`). Categories that are not listed
  there, such as `commitments`, are worth remembering but not sensitive;
- in, or under, a section of `security.sensitive_sections`, listed or not;
- in a note that says `rag: private`, listed or not.

Three things can be withheld, each as a whole:

- a note that says `rag: false`: for agents there is no such note, whatever they confirm;
- a note that says `rag: private`, from agents without the user's consent: it has no influence on
  answers. Only a caller that names its path learns that it needs consent;
- with `security.sensitive_policy: withhold`, a sensitive section, from agents without consent. It
  is judged as a whole (`sections`), and hits in it are listed with file and lines only.

What counts is the property in the file now (`CurrentPolicies`): before anything of a note goes to
anybody but the owner, or behind the privacy screen, its file is checked with stat, and read if it
has changed since it was indexed.

A caller may be limited to some vaults and folders. It sees nothing else, whatever it confirms:
other notes have no influence on answers, and the installation as a whole stays hidden.

The owner sees everything, except while the privacy screen of the page is on: then everything
sensitive is left out of the answer, whatever `sensitive_policy` says. File names stay.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypedDict

from obsidian_rag.engine import Engine
from obsidian_rag.notes import EVERYTHING, WORD_PART, RagPolicy, Scope, sensitive_categories
from obsidian_rag.tools.note_files import note_files

# A note by link id and path.
NoteKey = tuple[str, str]
HEALTH = "health"
RELATIONS = "relations"
PRIVATE = "private"
_CATEGORY_ALIASES = {"financial_debt": "financial"}
_MAX_VALUE_CHARS = 300
_MAX_KEY_CHARS = 60
_MAX_KEY_WORDS = 3
_MIN_KEY_WORD_CHARS = 4

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|[\r\n]+")
_MARKER = re.compile(r"^(?:[\s>]|[-*+]\s|\d{1,9}[.)]\s|\[.\]\s)+")
_EMPHASIS = re.compile(r"\*\*|__|~~|`")
_WIKILINK = re.compile(r"!?\[\[(?:[^\[\]|]*+\|)?([^\[\]|]*+)\]\]")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_OWED_TO = re.compile(
    r"\b(?:owe[ds]?|debt)\b(?:\s+(?:to|about|[^\w\s]?\d[\w.,]*))*"
    r"\s+([^\W\d_]\w*(?:\s+[^\W\d_]\w*)?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """The settings that decide what is sensitive."""

    patterns: Mapping[str, tuple[str, ...]]
    confirmed_categories: tuple[str, ...]
    sensitive_sections: tuple[str, ...]
    is_withholding: bool
    is_suggesting: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a passage is sensitive, and whether it is withheld until somebody confirms."""

    categories: tuple[str, ...]
    is_withheld: bool

    @property
    def is_sensitive(self) -> bool:
        """Whether the user must confirm before it is displayed."""
        return bool(self.categories)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the person whose notes these are, or an agent, perhaps with the user's consent.

    Nothing outside of `scope` is there for it, and with `is_read_only` it changes nothing. With
    `is_screened` it is the owner, while other people may see the screen.
    """

    is_owner: bool = False
    has_consent: bool = False
    scope: Scope = EVERYTHING
    is_read_only: bool = False
    is_screened: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether it may see only some of the notes."""
        return self.scope.is_limited

    def confirming(self, has_consent: bool) -> "Caller":
        """The same caller, with or without the user's consent."""
        return replace(self, has_consent=has_consent)

    @property
    def sees_private(self) -> bool:
        """Whether nothing sensitive is withheld."""
        return self.is_owner or self.has_consent

    def misses(self, verdict: Verdict) -> bool:
        """Whether a passage with this verdict is withheld."""
        if self.is_screened:
            return verdict.is_sensitive
        return verdict.is_withheld and not self.sees_private

    def may_miss(self, settings: GuardSettings, *, is_private: bool = False) -> bool:
        """Whether passages of a note can be withheld at all."""
        if self.is_screened:
            return True
        return (is_private or settings.is_withholding) and not self.sees_private

    def knows_of(self, policy: RagPolicy) -> bool:
        """Whether the caller may learn that a note with this policy exists."""
        if policy is RagPolicy.NEVER:
            return self.is_owner
        return policy is not RagPolicy.PRIVATE or self.sees_private


OWNER = Caller(is_owner=True)
SCREENED = Caller(is_owner=True, is_screened=True)
AGENT = Caller()


class CurrentPolicies:
    """The current `rag` properties of indexed notes, for one answer to one caller.

    The index may be older than a note's `rag` property. A note that has become hidden from the
    caller is left out, and so is a deleted one. At most MOST_READ changed files are read for an
    answer; further ones are left out too.
    """

    MOST_READ = 50
    # How often a query is repeated without the notes that had to be left out.
    MOST_ROUNDS = 10

    def __init__(self, engine: Engine, caller: Caller) -> None:
        self._engine = engine
        self._caller = caller
        self._seen: dict[NoteKey, RagPolicy | None] = {}
        self._is_checked: set[NoteKey] = set()
        self._read = 0

    def left_out(self, notes: Iterable[NoteKey]) -> frozenset[NoteKey]:
        """Those of these notes, by link id and path, that the caller may not know of."""
        if self._caller.is_owner and not self._caller.is_screened:
            return frozenset()
        wanted = dict.fromkeys(notes)
        unchecked: dict[str, list[str]] = {}
        for link_id, path in wanted:
            if (link_id, path) not in self._is_checked:
                unchecked.setdefault(link_id, []).append(path)
        for link_id, paths in unchecked.items():
            files = note_files(self._engine, link_id, self._caller.scope)
            found = files.policies(paths, self.MOST_READ - self._read)
            self._read += len(found)
            self._seen |= {(link_id, path): policy for path, policy in found.items()}
            self._is_checked |= {(link_id, path) for path in paths}
        return frozenset(
            note for note in wanted if note in self._seen and not self._is_visible(self._seen[note])
        )

    def is_private(self, note: NoteKey) -> bool:
        """Whether a checked note has become private since it was indexed."""
        return self._seen.get(note) in (RagPolicy.PRIVATE, RagPolicy.NEVER)

    def _is_visible(self, policy: RagPolicy | None) -> bool:
        return policy is not None and self._caller.knows_of(policy)


@dataclass(frozen=True, slots=True)
class Passage:
    """What a suggestion needs of a hit."""

    text: str
    source_file: str
    is_withheld: bool = False


class MemorySuggestion(TypedDict):
    """A fact to offer to the user for remembering."""

    key: str
    value: str
    source: str


def guard_settings(engine: Engine) -> GuardSettings:
    """The settings of an installation."""
    security, memory = engine.config.settings.security, engine.config.settings.memory
    names = (name.strip().casefold() for name in security.require_confirmation_for)
    return GuardSettings(
        patterns=memory.patterns,
        confirmed_categories=tuple(_CATEGORY_ALIASES.get(name, name) for name in names),
        sensitive_sections=security.sensitive_sections,
        is_withholding=security.sensitive_policy == "withhold",
        is_suggesting=memory.auto_suggest,
    )


def judge(
    text: str,
    section: str | None,
    heading_path: Sequence[str],
    tags: Sequence[str],
    is_private: bool,
    settings: GuardSettings,
) -> Verdict:
    """Judge a passage; the headings above it count as part of its text."""
    names = (*tags, *(f"#{name}" for name in heading_path))
    text = "\n".join((*heading_path, text)) if heading_path else text
    counted = {
        name: patterns
        for name, patterns in settings.patterns.items()
        if name.casefold() in settings.confirmed_categories
    }
    found = [
        *sensitive_categories(text, section, names, counted, ()),
        *_section_categories(text, section, names, settings),
        *([PRIVATE] if is_private else []),
    ]
    categories = tuple(dict.fromkeys(found))
    return Verdict(categories, is_private or (settings.is_withholding and bool(categories)))


def memory_suggestion(hits: Sequence[Passage], settings: GuardSettings) -> MemorySuggestion | None:
    """A fact to remember from the best passage, if a sentence of it matches a memory pattern."""
    if not settings.is_suggesting or not hits or hits[0].is_withheld:
        return None
    patterns = {pattern: (pattern,) for words in settings.patterns.values() for pattern in words}
    best, matched = "", tuple[str, ...]()
    for sentence in _sentences(hits[0].text):
        found = sensitive_categories(sentence, None, (), patterns, ())
        if len(found) > len(matched):
            best, matched = sentence, found
    if not matched:
        return None
    category = next(name for name, words in settings.patterns.items() if matched[0] in words)
    return MemorySuggestion(
        key=_key(category, best, matched), value=_shorten(best), source=hits[0].source_file
    )


def _section_categories(
    text: str, section: str | None, names: Sequence[str], settings: GuardSettings
) -> Iterator[str]:
    """Health or relations, for each sensitive section that contains the passage."""
    sections = settings.sensitive_sections
    # Only lines with a `#` can name a section; skipping the others is faster.
    text = "\n".join(line for line in text.split("\n") if "#" in line)
    if not sensitive_categories(text, section, names, {}, sections):
        return
    health = {HEALTH: settings.patterns.get(HEALTH, ())}
    for name in sections:
        if sensitive_categories(text, section, names, {}, (name,)):
            is_health = sensitive_categories("", f"#{name.lstrip('#')}", (), health, ())
            yield HEALTH if is_health else RELATIONS


def _sentences(text: str) -> Iterator[str]:
    """Sentences and lines with content, without list and quote marks."""
    for part in _SENTENCE_END.split(text):
        sentence = _EMPHASIS.sub("", _WIKILINK.sub(r"\1", _MARKER.sub("", part))).strip()
        words = [word for word in sentence.split() if not word.startswith("#")]
        # A line that only names its section is not a fact.
        if not _HEADING.match(part) and (len(words) > 1 or not sentence.isascii()):
            yield sentence


def _key(category: str, sentence: str, matched: Sequence[str]) -> str:
    """`debt_to_<name>`, or the category and the most distinctive words of the sentence."""
    if owed := _OWED_TO.search(sentence):
        creditor = list(takewhile(lambda word: word[0].isupper(), owed[1].split()))
        if creditor:
            return _slug(" ".join(["debt to", *creditor]))
    known = {word for pattern in matched for word in WORD_PART.findall(pattern.casefold())}
    words = [word for word in WORD_PART.findall(sentence) if word.casefold() not in known]
    names = [word for word in words[1:] if word[0].isupper() and len(word) > 1]
    long = [word for word in words if len(word) >= _MIN_KEY_WORD_CHARS and not word.isdigit()]
    ranked = [*names, *sorted(long, key=len, reverse=True)]
    chosen = list(dict.fromkeys(ranked))[:_MAX_KEY_WORDS]
    return _slug(" ".join([category, *sorted(chosen, key=words.index)]))


def _slug(text: str) -> str:
    return "_".join(WORD_PART.findall(text.casefold()))[:_MAX_KEY_CHARS].rstrip("_")


def _shorten(sentence: str) -> str:
    if len(sentence) <= _MAX_VALUE_CHARS:
        return sentence
    kept = sentence[: _MAX_VALUE_CHARS - 1]
    return (kept.rsplit(maxsplit=1)[0] if " " in kept else kept) + "…"
