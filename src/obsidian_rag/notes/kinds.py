"""The kinds of files that are notes; a new kind needs a row here and a module to parse it."""

from collections.abc import Callable
from dataclasses import dataclass

from obsidian_rag.notes.canvas import canvas_outline, parse_canvas
from obsidian_rag.notes.lines import Body
from obsidian_rag.notes.markdown import markdown_outline, parse_markdown
from obsidian_rag.notes.note import Heading, Note


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of file: its names, and how it is recognised, parsed and chunked.

    `is_plain_text`: the lines of the file are the text itself, headings included.
    """

    name: str
    suffixes: tuple[str, ...]
    media_type: str
    has_frontmatter: bool
    is_plain_text: bool
    parse: Callable[[str, str], Note]
    outline: Callable[[Note], tuple[Body, list[tuple[int, Heading]]]]


MARKDOWN = SourceKind(
    name="Markdown note",
    suffixes=(".md", ".markdown"),
    media_type="text/markdown",
    has_frontmatter=True,
    is_plain_text=True,
    parse=parse_markdown,
    outline=markdown_outline,
)
CANVAS = SourceKind(
    name="Canvas",
    suffixes=(".canvas",),
    media_type="application/json",
    has_frontmatter=False,
    is_plain_text=False,
    parse=parse_canvas,
    outline=canvas_outline,
)
KINDS = (MARKDOWN, CANVAS)


def kind_of(path: str) -> SourceKind:
    """The kind of a file by its name; unknown ones are read as Markdown."""
    name = path.lower()
    return next((kind for kind in KINDS if name.endswith(kind.suffixes)), MARKDOWN)


def is_markdown(path: str) -> bool:
    """Whether a file is Markdown by its name."""
    return path.lower().endswith(MARKDOWN.suffixes)


def parse_note(path: str, text: str) -> Note:
    """Read one file of a vault; `path` is relative to the vault, with forward slashes.

    Never raises: problems are in `parse_error`.
    """
    return kind_of(path).parse(path, text)


def body_lines(note: Note) -> tuple[int, list[str]]:
    """The lines of a note below its frontmatter, and the number of the first in the file.

    For a Canvas these are the lines of its cards, not of the file.
    """
    body, _ = kind_of(note.path).outline(note)
    return body.first + 1, body.lines[body.first :]
