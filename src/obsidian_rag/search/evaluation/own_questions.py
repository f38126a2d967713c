"""Generate questions with known answers from the vault itself."""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from obsidian_rag.notes import LINE_END, Link, LinkKind, Note, NoteNames, file_title, kind_of
from obsidian_rag.search.evaluation.golden import Question
from obsidian_rag.search.words import question_words

# Enough for any sample, and still a matter of seconds in a large vault.
_MAX_NOTES_READ = 5000
_MIN_TITLE_WORDS = 2
_MIN_SENTENCE_WORDS = 5
_MIN_LINK_WORDS, _MAX_LINK_WORDS = 2, 12
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")
_LINK = re.compile(r"!?\[\[([^\[\]]+)\]\]|!?\[([^\[\]]*)\]\(([^()\s]*)\)")
# Characters that the query language or Markdown would interpret.
_MARKS = re.compile(r"[\x00\"“”„«»*_`>|#~=:\[\]]+|(?<!\S)[-+]+|https?\S+")


def questions_from(
    indexed: set[str],
    notes_at: Callable[[Sequence[str]], Iterable[Note]],
    limit: int,
    seed: int = 0,
) -> list[Question]:
    """At most `limit` questions of each kind from the vault; the same seed gives the same ones.

    `title`: does a note's title find it? `alias`: does an alias? `link`: does the sentence
    around a link to a note, without the note's name, find the note? `reworded`: does the text of a
    link that shares no word with the note's names and headings? `notes_at` reads notes, and skips
    those that it cannot read.
    """
    chance = random.Random(seed)
    paths = sorted(indexed)
    chance.shuffle(paths)
    notes = list(notes_at(paths[:_MAX_NOTES_READ]))
    titles = _group_by_name((note.title, note.path) for note in notes)
    aliases = _group_by_name((alias, note.path) for note in notes for alias in note.aliases)
    by_title = {fold: found for fold, found in titles.items() if _has_enough_words(fold)}
    by_alias = {fold: found for fold, found in aliases.items() if fold not in titles}
    names = {note.path: (note.title, *note.aliases) for note in notes}
    paths_by_name = NoteNames((path, path) for path in indexed)
    kinds = (
        [Question(name, dict.fromkeys(owners, 1.0), "title") for name, owners in by_title.values()],
        [Question(name, dict.fromkeys(owners, 1.0), "alias") for name, owners in by_alias.values()],
        _link_questions(notes, paths_by_name, names),
        _reworded_questions(notes, paths_by_name),
    )
    return [question for kind in kinds for question in chance.sample(kind, min(limit, len(kind)))]


def _group_by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, list[str]]]:
    """Case-folded names, each with its spelling and all the notes that have it."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name, path in pairs:
        _, owners = found.setdefault(name.casefold(), (name, []))
        if path not in owners:
            owners.append(path)
    return found


def _has_enough_words(title: str) -> bool:
    return len(_WORD.findall(title)) >= _MIN_TITLE_WORDS


def _reworded_questions(notes: Sequence[Note], paths_by_name: NoteNames[str]) -> list[Question]:
    """Link texts that share no word with the names and headings of the note they link to.

    The note with the link is excluded; texts that link to several notes are dropped.
    """
    words_of = {note.path: _name_words(note) for note in notes}
    found: dict[str, dict[str, Question]] = {}
    for note in notes:
        for link in note.links:
            target = _resolve_unique(link, note.path, paths_by_name)
            if target is None or target == note.path or target not in words_of:
                continue
            text = " ".join(_MARKS.sub(" ", link.display or "").split())
            words = set(question_words(text))
            is_enough = _MIN_LINK_WORDS <= len(words) <= _MAX_LINK_WORDS
            if is_enough and words.isdisjoint(words_of[target]):
                question = Question(text, {target: 1.0}, "reworded", note.path)
                found.setdefault(text.casefold(), {}).setdefault(target, question)
    return [one for some in found.values() if len(some) == 1 for one in some.values()]


def _name_words(note: Note) -> frozenset[str]:
    path = re.sub(r"[\W_]+", " ", note.path)
    names = (path, note.title, *note.aliases, *(head.text for head in note.headings))
    return frozenset(question_words(" ".join(names)))


def _link_questions(
    notes: Sequence[Note], paths_by_name: NoteNames[str], names: Mapping[str, tuple[str, ...]]
) -> list[Question]:
    questions: dict[str, Question] = {}
    for note in notes:
        for link, sentence in _link_sentences(note):
            target = _resolve_unique(link, note.path, paths_by_name)
            if target is None or target == note.path:
                continue
            query = _remove_names(sentence, (file_title(target), *names.get(target, ())))
            if query is not None:
                questions.setdefault(query, Question(query, {target: 1.0}, "link", note.path))
    return list(questions.values())


def _link_sentences(note: Note) -> Iterator[tuple[Link, str]]:
    """Sentences with exactly one link to a note; a NUL replaces the link."""
    lines = LINE_END.split(note.text) if kind_of(note.path).is_plain_text else []
    by_line: dict[int, list[Link]] = {}
    for link in note.links:
        if note.body_line <= link.line <= len(lines):
            by_line.setdefault(link.line, []).append(link)
    for number, links in by_line.items():
        line = lines[number - 1].replace("\x00", " ")
        marked = _LINK.sub(lambda found: "\x00" if _is_inside(found) else found[2], line)
        if marked.count("\x00") != len(links):
            continue
        waiting = iter(links)
        for sentence in _SENTENCE_END.split(marked):
            inside = [next(waiting) for _ in range(sentence.count("\x00"))]
            if len(inside) == 1 and inside[0].kind is not LinkKind.EMBED:
                yield inside[0], sentence


def _remove_names(sentence: str, names: Iterable[str]) -> str | None:
    """The sentence without its link and the target's names, if enough of it is left."""
    for name in sorted(filter(None, names), key=len, reverse=True):
        sentence = re.sub(rf"\b{re.escape(name)}\b", " ", sentence, flags=re.IGNORECASE)
    plain = " ".join(_MARKS.sub(" ", sentence).split())
    return plain if len(_WORD.findall(plain)) >= _MIN_SENTENCE_WORDS else None


def _is_inside(link: re.Match[str]) -> bool:
    return link[1] is not None or not re.match(r"[A-Za-z][\w+.-]*:|//", link[3])


def _resolve_unique(link: Link, source: str, paths_by_name: NoteNames[str]) -> str | None:
    """The note that a link resolves to, if there is exactly one."""
    meant = paths_by_name.meant(link.target, source) if link.target else []
    return meant[0] if len(meant) == 1 else None
