"""Who may see what: the one place that decides, and what is worth remembering. Pure.

Threat: an agent shows or sends what its user meant to keep; words of a note may even ask it to.
So the decision rests on settings and properties of the note, never on what the agent believes,
and when two settings disagree the stricter one wins.

A passage is sensitive if it is

- in a category of `security.require_confirmation_for`: the patterns of `memory.patterns` with the
  same name (`financial_debt` means the category `financial`). Categories that are not listed
  there, such as `commitments`, are worth remembering but not sensitive;
- in, or under, a section of `security.sensitive_sections`, listed or not;
- in a note that says `rag: private`, listed or not.

Three things may stay back, each wholly:

- a note that says `rag: false`: for agents there is no such note, whatever they confirm;
- a note that says `rag: private`, from agents without the user's consent: nothing of it decides
  an answer. Only a caller that names its path is told that it needs consent;
- with `security.sensitive_policy: withhold`, a sensitive section, from agents without consent. It
  is judged as a whole (`sections`), and found ones are listed by file and lines alone.

A caller may be limited to some vaults and folders. For it there is nothing else, whatever it
confirms: notes outside decide no answer, and nothing is told of the installation as a whole.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypedDict

from obsidian_rag.engine import Engine
from obsidian_rag.notes import EVERYTHING, RagPolicy, Scope, sensitive_categories

HEALTH = "health"
RELATIONS = "relations"
PRIVATE = "private"
_CALLED = {"financial_debt": "financial"}
_MAX_VALUE_CHARS = 300
_MAX_KEY_CHARS = 60
_TELLING_WORDS = 3
_SHORTEST_TELLING = 4

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|[\r\n]+")
_MARKER = re.compile(r"^(?:[\s>]|[-*+]\s|\d{1,9}[.)]\s|\[.\]\s)+")
_EMPHASIS = re.compile(r"\*\*|__|~~|`")
_WIKILINK = re.compile(r"!?\[\[(?:[^\[\]|]*+\|)?([^\[\]|]*+)\]\]")
_WORD = re.compile(r"[^\W_]+")
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

    Nothing outside of `scope` is there for it, and with `is_read_only` it changes nothing.
    """

    is_owner: bool = False
    has_consent: bool = False
    scope: Scope = EVERYTHING
    is_read_only: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether there may be notes that are not there for it."""
        return self.scope.is_limited

    def confirming(self, has_consent: bool) -> "Caller":
        """The same in a call that says, or does not, that the user agreed."""
        return replace(self, has_consent=has_consent)

    @property
    def sees_private(self) -> bool:
        """Whether nothing sensitive is withheld."""
        return self.is_owner or self.has_consent

    def misses(self, verdict: Verdict) -> bool:
        """Whether a passage so judged stays back."""
        return verdict.is_withheld and not self.sees_private

    def knows_of(self, policy: RagPolicy) -> bool:
        """Whether there is such a note at all, as far as the caller can tell."""
        if policy is RagPolicy.NEVER:
            return self.is_owner
        return policy is not RagPolicy.PRIVATE or self.sees_private


OWNER = Caller(is_owner=True)
AGENT = Caller()


@dataclass(frozen=True, slots=True)
class Passage:
    """A found passage as far as a suggestion needs it."""

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
        confirmed_categories=tuple(_CALLED.get(name, name) for name in names),
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
    """What is to be done with a passage; the headings above it are words of it too."""
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
        key=_key(category, best, matched), value=_shortened(best), source=hits[0].source_file
    )


def _section_categories(
    text: str, section: str | None, names: Sequence[str], settings: GuardSettings
) -> Iterator[str]:
    """Health or relations, for each sensitive section the passage stands in."""
    sections = settings.sensitive_sections
    # Only lines with a `#` can name a section; looking at no others keeps many hits quick.
    text = "\n".join(line for line in text.split("\n") if "#" in line)
    if not sensitive_categories(text, section, names, {}, sections):
        return
    health = {HEALTH: settings.patterns.get(HEALTH, ())}
    for name in sections:
        if sensitive_categories(text, section, names, {}, (name,)):
            is_health = sensitive_categories("", f"#{name.lstrip('#')}", (), health, ())
            yield HEALTH if is_health else RELATIONS


def _sentences(text: str) -> Iterator[str]:
    """Sentences and lines that say something, without list and quote marks."""
    for part in _SENTENCE_END.split(text):
        sentence = _EMPHASIS.sub("", _WIKILINK.sub(r"\1", _MARKER.sub("", part))).strip()
        words = [word for word in sentence.split() if not word.startswith("#")]
        # A line that only names its section is no fact.
        if not _HEADING.match(part) and (len(words) > 1 or not sentence.isascii()):
            yield sentence


def _key(category: str, sentence: str, matched: Sequence[str]) -> str:
    """`debt_to_<name>`, or the category and the words that tell most about the sentence."""
    if owed := _OWED_TO.search(sentence):
        creditor = list(takewhile(lambda word: word[0].isupper(), owed[1].split()))
        if creditor:
            return _slug(" ".join(["debt to", *creditor]))
    known = {word for pattern in matched for word in _WORD.findall(pattern.casefold())}
    words = [word for word in _WORD.findall(sentence) if word.casefold() not in known]
    names = [word for word in words[1:] if word[0].isupper() and len(word) > 1]
    long = [word for word in words if len(word) >= _SHORTEST_TELLING and not word.isdigit()]
    ranked = [*names, *sorted(long, key=len, reverse=True)]
    chosen = list(dict.fromkeys(ranked))[:_TELLING_WORDS]
    return _slug(" ".join([category, *sorted(chosen, key=words.index)]))


def _slug(text: str) -> str:
    return "_".join(_WORD.findall(text.casefold()))[:_MAX_KEY_CHARS].rstrip("_")


def _shortened(sentence: str) -> str:
    if len(sentence) <= _MAX_VALUE_CHARS:
        return sentence
    kept = sentence[: _MAX_VALUE_CHARS - 1]
    return (kept.rsplit(maxsplit=1)[0] if " " in kept else kept) + "…"
