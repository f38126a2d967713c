"""The kinds of files that are notes: a row here and a module that reads it are a new kind."""

from collections.abc import Callable
from dataclasses import dataclass

from obsidian_rag.notes.canvas import canvas_outline, parse_canvas
from obsidian_rag.notes.lines import Body
from obsidian_rag.notes.markdown import markdown_outline, parse_markdown
from obsidian_rag.notes.note import Heading, Note


@dataclass(frozen=True, slots=True)
class SourceKind:
    """One kind of file: how it is called, told, parsed and cut.

    `is_plain_text`: the lines of the file are the text itself, and headings stand on them.
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
    """What a file is by its name; one of no known kind is read as Markdown."""
    name = path.lower()
    return next((kind for kind in KINDS if name.endswith(kind.suffixes)), MARKDOWN)


def is_markdown(path: str) -> bool:
    """Whether a file says by its name that it is Markdown."""
    return path.lower().endswith(MARKDOWN.suffixes)


def parse_note(path: str, text: str) -> Note:
    """Read one file of a vault; `path` is relative to the vault, with forward slashes.

    Never raises: what is wrong is said in `parse_error`.
    """
    return kind_of(path).parse(path, text)


def body_lines(note: Note) -> tuple[int, list[str]]:
    """The lines of a note below its frontmatter, and the number of the first in the file.

    No line of a Canvas is one of its file.
    """
    body, _ = kind_of(note.path).outline(note)
    return body.first + 1, body.lines[body.first :]
