"""Untrusted Markdown made safe to embed, show and hand to agents.

HTML and invisible characters go, whitespace is collapsed. The lines of a note are cleaned before
they are cut into chunks, because a tag or a comment may span them; no line is added or removed.
"""

from obsidian_rag.notes.html import strip_html
from obsidian_rag.notes.invisible import drop_invisible_lines, has_controls
from obsidian_rag.notes.lines import split_lines


def sanitise(text: str) -> str:
    """Prose without HTML, invisible characters and surplus whitespace. Idempotent."""
    return tidy("\n".join(clean_lines(split_lines(text))))


def clean_lines(lines: list[str]) -> list[str]:
    """The same number of lines, each without HTML, invisible characters and runs of spaces."""
    text = "\n".join(lines)
    with_controls = has_controls(text)
    if with_controls or not text.isascii():
        text = "\n".join(drop_invisible_lines(lines, with_controls=with_controls))
    text = strip_html(text)
    lines = text.split("\n")
    if "\t" in text:
        return [_squeeze(line) if "  " in line or "\t" in line else line for line in lines]
    return [_squeeze(line) if "  " in line else line for line in lines] if "  " in text else lines


def tidy(text: str) -> str:
    """No space before a line end, at most one blank line in a row, none at the ends."""
    if " \n" in text:
        text = text.replace(" \n", "\n")
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.strip()


def _squeeze(line: str) -> str:
    """Runs of blanks become one space, also the indentation."""
    indent = " " if line[0] in " \t" else ""
    return indent + " ".join(line.split())
