"""Data for reading notes: a note as HTML with outline and backlinks, its files, and filters.

GET /page/note?vault=&path=&revealed=   the note; `revealed` are private parts by their first line
GET /page/file?vault=&path=&from=   a picture, sound or PDF that the note at `from` shows
GET /page/filters?kind=&typed=      folders, tags or properties to filter by
GET /page/relation?note=&target=&rel=   the lines that adding a relation would change
"""

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote, urlencode

from starlette.responses import Response

from obsidian_rag.engine import Engine, index_stamp
from obsidian_rag.errors import NotFound, ObsidianRagError
from obsidian_rag.tools import (
    Caller,
    Envelope,
    NoteView,
    PrivatePart,
    filter_choices,
    note_attachment,
    note_view,
    relation_preview,
    success,
    to_json,
)
from obsidian_rag.transports.http.web.markdown import MOST_CHARS, Embedded, Links, Renderer

_renderer = Renderer()
# No SVG: as a document of its own it could run script.
_MEDIA = {
    "avif": "image/avif", "bmp": "image/bmp", "gif": "image/gif", "jpeg": "image/jpeg",
    "jpg": "image/jpeg", "png": "image/png", "webp": "image/webp", "flac": "audio/flac",
    "m4a": "audio/mp4", "mp3": "audio/mpeg", "ogg": "audio/ogg", "opus": "audio/ogg",
    "wav": "audio/wav", "pdf": "application/pdf",
}  # fmt: skip
_FILE_HEADERS = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_MAX_EMBEDDED_CHARS = 50_000


def read_note(
    engine: Engine,
    asked: Mapping[str, str],
    caller: Caller,
    sign: Callable[[str], str] = str,
) -> Envelope:
    """A note for the page; `sign` signs the query of a file's address."""
    vault, name = asked.get("vault") or None, asked.get("path", "")
    revealed = {int(line) for line in asked.get("revealed", "").split(",") if line.isdecimal()}
    view = note_view(engine, name, vault, caller, revealed)
    names = {one.link_id: one.name for one in engine.vaults}
    note = view.note
    state = ""
    with contextlib.suppress(ObsidianRagError):
        state = index_stamp(engine)[0]
    state = f"{state} {note.path} {caller.is_screened} {sorted(view.links.targets.items())}"
    text, private = _markdown(view)
    links = _links(engine, vault, view, caller, sign)
    html = _renderer.html(text, links, state, private)
    return success(
        {
            "path": note.path,
            "title": view.title,
            "html": html,
            "is_cut": len(view.text) > MOST_CHARS,
            "tags": view.tags,
            "date": view.date,
            "properties": to_json(view.properties),
            "outline": to_json(view.outline),
            "backlinks": [
                {
                    "path": card.path,
                    "title": card.title,
                    "vault": names.get(card.link_id, ""),
                    "is_private": card.is_private,
                }
                for card in view.links.backlinks
            ],
            "link": view.link,
            "private": to_json(view.private),
            "parse_error": note.parse_error if view.properties else None,
        }
    )


def read_file(engine: Engine, asked: Mapping[str, str], _: Caller) -> Response:
    """A file embedded in a note; never one that a browser would run."""
    name = asked.get("path", "")
    kind = _MEDIA.get(name.rpartition(".")[2].lower())
    if kind is None:
        raise NotFound("Files of this kind are not shown.", "Open it in Obsidian.")
    vault = asked.get("vault") or None
    content = note_attachment(engine, name, asked.get("from", ""), vault)[1]
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    return Response(content, headers={**_FILE_HEADERS, "ETag": tag}, media_type=kind)


def read_filters(engine: Engine, asked: Mapping[str, str], caller: Caller) -> Envelope:
    """Filters that match what was typed."""
    found = filter_choices(engine, asked.get("kind", ""), asked.get("typed", "")[:200], caller)
    return success({"choices": to_json(found)})


def read_relation(engine: Engine, asked: Mapping[str, str], caller: Caller) -> Envelope:
    """The lines that adding a relation would change."""
    rel = asked.get("rel") or "related"
    changes = relation_preview(
        engine,
        asked.get("note", ""),
        asked.get("target", ""),
        rel,
        asked.get("vault") or None,
        caller,
    )
    return success({"changes": changes})


def _markdown(view: NoteView) -> tuple[str, Sequence[PrivatePart]]:
    """The Markdown file, or the text extracted from another file, and its private parts.

    A file that is not Markdown is hidden as a whole.
    """
    if view.note.path.lower().endswith(".md"):
        return view.text, view.private
    is_hidden = any(part.is_hidden for part in view.private)
    return "" if is_hidden else view.note.text, view.private


def _links(
    engine: Engine, vault: str | None, view: NoteView, caller: Caller, sign: Callable[[str], str]
) -> Links:
    targets = view.links.targets

    def address(path: str) -> str:
        return f"/note/{quote(vault or '', safe='')}/{quote(path)}"

    def note(target: str) -> str | None:
        path = targets.get(target)
        return None if path is None else address(path)

    def file(target: str) -> str:
        asked = {"vault": vault or "", "path": target, "from": view.note.path}
        return "/page/file?" + sign(urlencode(asked))

    def embedded(target: str, heading: str) -> Embedded | None:
        path = targets.get(target)
        if path is None:
            return None
        with contextlib.suppress(ObsidianRagError):
            other = note_view(engine, path, vault, caller)
            first, last = other.lines_under(heading)
            text = "\n".join(other.lines[first - 1 : last])[:_MAX_EMBEDDED_CHARS]
            private = [
                replace(part, first=max(1, part.first - first + 1), last=part.last - first + 1)
                for part in other.private
                if part.first <= last and first <= part.last
            ]
            own = _links(engine, vault, other, caller, sign)
            return Embedded(other.title, address(path), text, own, private)
        return None

    return Links(note, file, embedded)
