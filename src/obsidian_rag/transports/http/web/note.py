"""The reader's data: a note as HTML with outline and backlinks, the files it shows, filters.

GET /page/note?vault=&path=         the note
GET /page/file?vault=&path=&from=   a picture, sound or PDF that the note at `from` shows
GET /page/filters?kind=&typed=      folders, tags or properties to filter by
GET /page/relation?note=&target=&rel=   the lines that adding a relation would change
"""

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from urllib.parse import quote, urlencode

from starlette.responses import Response

from obsidian_rag.engine import Engine, index_stamp
from obsidian_rag.errors import NotFound, ObsidianRagError
from obsidian_rag.tools import (
    Envelope,
    NoteView,
    filter_choices,
    note_attachment,
    note_view,
    relation_preview,
    success,
)
from obsidian_rag.transports.http.web.markdown import MOST_CHARS, Links, Renderer

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
_MOST_EMBEDDED = 50_000


def read_note(engine: Engine, asked: Mapping[str, str]) -> Envelope:
    """A note as the reader shows it."""
    vault, name = asked.get("vault") or None, asked.get("path", "")
    view = note_view(engine, name, vault)
    names = {one.link_id: one.name for one in engine.vaults}
    note = view.note
    state = ""
    with contextlib.suppress(ObsidianRagError):
        state = index_stamp(engine)[0]
    html = _renderer.html(_markdown(view), _links(engine, vault, view), f"{state} {note.path}")
    properties = {str(key): _plain(value) for key, value in note.frontmatter.items()}
    return success(
        {
            "path": note.path,
            "title": note.title,
            "html": html,
            "is_cut": len(view.text) > MOST_CHARS,
            "tags": list(note.tags),
            "date": note.date,
            "properties": properties,
            "outline": [asdict(heading) for heading in note.headings],
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
            "is_private": view.is_private,
            "veiled": [
                {"first": first, "last": last, "categories": list(categories)}
                for first, last, categories in view.veiled
            ],
            "parse_error": note.parse_error,
        }
    )


def read_file(engine: Engine, asked: Mapping[str, str]) -> Response:
    """A file that a note shows; nothing that a browser would run."""
    name = asked.get("path", "")
    kind = _MEDIA.get(name.rpartition(".")[2].lower())
    if kind is None:
        raise NotFound("Files of this kind are not shown.", "Open it in Obsidian.")
    _, content = note_attachment(engine, name, asked.get("from", ""), asked.get("vault") or None)
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    return Response(content, headers={**_FILE_HEADERS, "ETag": tag}, media_type=kind)


def read_filters(engine: Engine, asked: Mapping[str, str]) -> Envelope:
    """Filters that could be meant by what was typed."""
    found = filter_choices(engine, asked.get("kind", ""), asked.get("typed", "")[:200])
    return success({"choices": [asdict(one) for one in found]})


def read_relation(engine: Engine, asked: Mapping[str, str]) -> Envelope:
    """The exact change that a relation would make."""
    rel = asked.get("rel") or "related"
    changes = relation_preview(
        engine, asked.get("note", ""), asked.get("target", ""), rel, asked.get("vault") or None
    )
    return success({"changes": changes})


def _markdown(view: NoteView) -> str:
    """The text of the file, or what was read out of one that is no Markdown."""
    return view.text if view.note.path.lower().endswith(".md") else view.note.text


def _links(engine: Engine, vault: str | None, view: NoteView) -> Links:
    targets = view.links.targets

    def address(path: str) -> str:
        return f"/note/{quote(vault or '', safe='')}/{quote(path)}"

    def note(target: str) -> str | None:
        path = targets.get(target)
        return None if path is None else address(path)

    def file(target: str) -> str:
        return "/page/file?" + urlencode(
            {"vault": vault or "", "path": target, "from": view.note.path}
        )

    def embedded(target: str, heading: str) -> tuple[str, str, str, Links] | None:
        path = targets.get(target)
        if path is None:
            return None
        with contextlib.suppress(ObsidianRagError):
            other = note_view(engine, path, vault)
            first, last = other.lines_under(heading)
            is_veiled = any(one <= last and first <= end for one, end, _ in other.veiled)
            if not other.is_private and not is_veiled:
                text = "\n".join(other.text.splitlines()[first - 1 : last])
                own = _links(engine, vault, other)
                return other.note.title, address(path), text[:_MOST_EMBEDDED], own
        return None

    return Links(note, file, embedded)


def _plain(value: object) -> object:
    """A property as JSON can say it."""
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return str(value)
