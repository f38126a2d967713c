"""Renders a note as HTML that cannot run anything.

Threat: notes come from anywhere, and a script in a note could read all others. So all HTML passes
through nh3 as the very last step: no script, style, form or frame, no link except to ourselves, the
web and mail, no picture from elsewhere (it would reveal the reader), no id or class that the page
uses itself. The page's Content-Security-Policy is a second barrier.
"""

import hashlib
import html
import re
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, html_block
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from obsidian_rag.tools import PrivatePart
from obsidian_rag.transports.http.web.wiki_syntax import CALLOUTS, use_wiki_syntax

MOST_CHARS = 1_000_000
_MAX_HTML_CHARS = 6_000_000
_MAX_CODE_CHARS = 20_000
_CACHE_SIZE = 48
_MAX_NESTING = 100
_FILE = "/page/file?"
_OWN_PREFIXES = ("/note/", "/search?", _FILE, "#")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp")
_SOUNDS = (".mp3", ".wav", ".m4a", ".ogg", ".flac", ".opus")
# Blocks of HTML that a blank line does not end, and what ends them; no others are taken for HTML.
_ENDLESS = (
    (re.compile(r"<!--"), re.compile(r"-->")),
    (
        re.compile(r"<(?:script|pre|style|textarea)(?=[\s>]|$)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    ),
    (re.compile(r"<[!?]"), None),
)
# A whole comment or tag as a browser reads it, or a `<` that begins one without an end.
_WHOLE_TAG = re.compile(
    r"<!--(?:-?>|(?:[^<]|<(?!!--))*?--!?>)|<(?:[!?]|/(?![a-z]))[^<>]*+>"
    r"""|</?[a-z](?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+>|<(?=[!?/a-z])""",
    re.IGNORECASE,
)
_TAG_NAME = re.compile(r"<(/?)([a-z][^\s/>]*)", re.IGNORECASE)
# A private-use character that stands for a `<` that must not start a tag.
_LESS_THAN = "\ue0f0"
_EMBED = re.compile(r"!\[\[")
_SIZE = re.compile(r"(\d{1,4})(?:x\d{1,4})?")
_ID = re.compile(r"fn(?:ref)?[\w:-]{1,80}")
_CLASS = re.compile(r"[a-z][a-z0-9]{0,2}")
_CLASSES = frozenset(
    {
        "callout", "callout-title", "embed", "embed-title", "footnote-backref", "footnote-ref",
        "footnotes", "footnotes-list", "footnote-item", "inline", "block", "math", "missing", "tag",
        "task", "task-item", "wikilink", "elsewhere", "code", "screened", "private-label",
    }
    | {f"callout-{kind}" for kind in CALLOUTS}
)  # fmt: skip
_TAGS = {
    "a", "abbr", "aside", "audio", "b", "blockquote", "br", "caption", "cite", "code", "col",
    "colgroup", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure",
    "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "mark", "ol", "p",
    "pre", "q", "s", "samp", "section", "small", "span", "strong", "sub", "summary", "sup", "table",
    "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var", "wbr",
}  # fmt: skip
# Left out with their content, which is not HTML. Unclosed, they would take all that follows along.
_SWALLOWING = {
    "iframe", "math", "noembed", "noframes", "noscript", "plaintext", "script", "select", "style",
    "svg", "template", "textarea", "title", "xmp",
}  # fmt: skip
# Left out without their content. Other names are not HTML, such as the `<path>` of a command.
_LEFT_OUT = {
    "acronym", "address", "area", "article", "base", "bdi", "bdo", "big", "blink", "body", "button",
    "canvas", "center", "data", "datalist", "dialog", "dir", "embed", "fieldset", "font", "footer",
    "form", "frame", "frameset", "head", "header", "hgroup", "html", "input", "label", "legend",
    "link", "main", "map", "marquee", "menu", "meta", "meter", "nav", "nobr", "object", "optgroup",
    "option", "output", "param", "picture", "progress", "rb", "rp", "rt", "rtc", "ruby", "search",
    "slot", "source", "strike", "time", "track", "tt", "video",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Links:
    """Resolves links and embeds: addresses, and the text of embedded notes."""

    # The address of a note, and of a file that the note shows; None if there is none.
    note: Callable[[str], str | None]
    file: Callable[[str], str]
    # An embedded note or section.
    embedded: "Callable[[str, str], Embedded | None]"


@dataclass(frozen=True, slots=True)
class Embedded:
    """An embedded note with its own links and private parts."""

    title: str
    address: str
    text: str
    links: Links
    private: Sequence[PrivatePart]


class Renderer:
    """Renders notes, with a small cache by content; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, str] = OrderedDict()

    def html(self, text: str, links: Links, state: str, private: Sequence[PrivatePart] = ()) -> str:
        """The note as HTML; `state` must change when links may resolve differently."""
        if _EMBED.search(text):  # it shows other notes, which may have changed since
            return render(text, links, private)
        key = hashlib.sha256(f"{state}\0{private}\0{text}".encode("utf-8", "replace")).hexdigest()
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept
        made = render(text, links, private)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _CACHE_SIZE:
                self._kept.popitem(last=False)
        return made


def render(
    text: str, links: Links, private: Sequence[PrivatePart] = (), *, is_embedded: bool = False
) -> str:
    """Render the text as sanitised HTML, cut if it is too long."""
    env: dict[str, Any] = {"links": links, "is_embedded": is_embedded, "private": private}
    made = str(_parser().render(text[:MOST_CHARS], env)).replace(_LESS_THAN, "&lt;")
    if len(made) > _MAX_HTML_CHARS:
        made = f"<pre>{html.escape(text[: MOST_CHARS // 4])}</pre>"
    return _cleaner().clean(made)


@cache
def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": True, "highlight": _highlight})
    # Text nested deeper would be dropped silently.
    md.options["maxNesting"] = _MAX_NESTING
    md.enable(["table", "strikethrough"])
    md.use(front_matter_plugin).use(footnote_plugin)
    md.use(dollarmath_plugin, allow_space=False, double_inline=True)
    use_wiki_syntax(md)
    md.block.ruler.at("html_block", _html_block, {"alt": ["paragraph", "reference", "blockquote"]})
    md.core.ruler.push("lost_tags", _show_lost_tags)
    md.core.ruler.push("lines", _number_lines)
    md.core.ruler.push("private", _mark_private)
    for name, rule in _RULES.items():
        md.add_render_rule(name, rule)
    return md


def _html_block(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block of HTML, unless it would never end: then it is text."""
    start = state.bMarks[first] + state.tShift[first]
    for opening, closing in _ENDLESS:
        if opening.match(state.src, start, state.eMarks[first]):
            if closing is None or start > _last_place(state, closing):
                return False
            break
    return html_block(state, first, last, silent)


def _last_place(state: StateBlock, closing: re.Pattern[str]) -> int:
    """Where this stands in the note for the last time, or -1."""
    places = state.env.setdefault("last_places", {})
    if closing not in places:
        places[closing] = max((one.start() for one in closing.finditer(state.src)), default=-1)
    return int(places[closing])


def _show_lost_tags(state: StateCore) -> None:
    """Turn tags into text that would disappear, or take along what follows them."""
    for token in state.tokens:
        if token.type == "html_block":
            whole = _WHOLE_TAG.sub(_mark_unfinished, token.content)
            letters = list(whole)
            for place in _find_lost_tags(whole):
                letters[place] = _LESS_THAN
            token.content = "".join(letters)
        parts = [one for one in token.children or () if one.type == "html_inline"]
        lost = _find_lost_tags("".join(one.content for one in parts))
        place = 0
        for part in parts:
            if place in lost:
                part.type = "text"
            place += len(part.content)


def _find_lost_tags(text: str) -> set[int]:
    """The positions of tags that are not HTML, and of those whose content never ends."""
    tags = [(tag.start(), tag[1], tag[2].lower()) for tag in _TAG_NAME.finditer(text)]
    ends: dict[str, list[int]] = {}
    for place, slash, name in tags:
        if slash:
            ends.setdefault(name, []).append(place)
    lost, inside_until = set(), 0
    for place, slash, name in tags:
        if place < inside_until or name in _TAGS or name in _LEFT_OUT:
            continue
        if name not in _SWALLOWING:
            lost.add(place)
        elif not slash:
            own = ends.get(name, [])
            after = own[bisect_left(own, place) :][:1]
            if after:
                inside_until = after[0]
            else:
                lost.add(place)
    return lost


def _mark_unfinished(found: re.Match[str]) -> str:
    return _LESS_THAN if found[0] == "<" else found[0]


def _number_lines(state: Any) -> None:
    """Add the line numbers of the file to every block."""
    for token in state.tokens:
        if token.map and token.nesting >= 0 and token.type != "inline":
            token.attrSet("data-line", str(token.map[0] + 1))
            token.attrSet("data-end", str(token.map[1]))


def _mark_private(state: Any) -> None:
    """Insert the categories before each private part, or in its place if it is hidden."""
    for part in reversed(state.env["private"]):
        place = next(
            (
                place
                for place, token in enumerate(state.tokens)
                if token.level == 0
                and token.nesting >= 0
                # Footnotes are rendered at the end, whatever line they are from.
                and (token.type == "footnote_block_open" or _begins_after(token, part.first - 1))
            ),
            len(state.tokens),
        )
        mark = Token("private", "", 0)
        mark.meta = {"part": part}
        state.tokens.insert(place, mark)


def _begins_after(token: Token, line: int) -> bool:
    return token.map is not None and token.map[0] >= line


def _highlight(code: str, language: str, _: str) -> str:
    if not language or len(code) > _MAX_CODE_CHARS:
        return ""
    try:
        lexer = get_lexer_by_name(language.split()[0])
    except (ClassNotFound, IndexError):
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


Env = MutableMapping[str, Any]


def _wikilink(_: Any, tokens: Sequence[Token], place: int, __: Any, env: Env) -> str:
    meta = tokens[place].meta
    heading = f"#{quote(meta['heading'])}" if meta["heading"] else ""
    label = meta["label"] or " › ".join(filter(None, (meta["target"], meta["heading"])))
    if not meta["target"]:
        return f'<a class="wikilink" href="{heading or "#"}">{html.escape(label)}</a>'
    if _is_file(meta["target"]):
        href: str | None = env["links"].file(meta["target"])
    else:
        href = env["links"].note(meta["target"])
    if href is None:
        return f'<span class="wikilink missing">{html.escape(label)}</span>'
    return f'<a class="wikilink" href="{html.escape(href + heading)}">{html.escape(label)}</a>'


def _embed(_: Any, tokens: Sequence[Token], place: int, __: Any, env: Env) -> str:
    meta = tokens[place].meta
    target, label = meta["target"], meta["label"] or ""
    if _is_file(target):
        return _render_file(env["links"].file(target), target, label)
    found = None if env["is_embedded"] else env["links"].embedded(target, meta["heading"])
    if found is None:
        return _wikilink(_, tokens, place, __, env)
    inside = render(found.text, found.links, found.private, is_embedded=True)
    address, title = html.escape(found.address), html.escape(found.title)
    head = f'<a class="embed-title" href="{address}">{title}</a>'
    return f'<aside class="embed">{head}{inside}</aside>'


def _image(self: Any, tokens: Sequence[Token], place: int, options: Any, env: Env) -> str:
    token = tokens[place]
    source = str(token.attrs.get("src", ""))
    label = self.renderInlineAsText(token.children or [], options, env)
    parts = urlsplit(source)
    if parts.scheme in ("http", "https") or source.startswith("//"):
        shown = html.escape(f"{label or 'Picture'} ({parts.hostname or 'elsewhere'})")
        return f'<a class="elsewhere" href="{html.escape(source)}">{shown}</a>'
    if parts.scheme:
        return html.escape(label)
    return _render_file(env["links"].file(unquote(parts.path)), unquote(parts.path), label)


def _render_file(href: str, name: str, label: str) -> str:
    """Embed a picture or a sound; link to anything else."""
    size = _SIZE.fullmatch(label.strip())
    shown, source = html.escape(name if size or not label else label), html.escape(href)
    lower = name.lower()
    if lower.endswith(_IMAGES):
        width = f' width="{size[1]}"' if size else ""
        return f'<img src="{source}" alt="{shown}" loading="lazy"{width}>'
    if lower.endswith(_SOUNDS):
        return f'<audio controls preload="none" src="{source}"></audio>'
    return f'<a class="elsewhere" href="{source}">{shown}</a>'


def _link_open(self: Any, tokens: Sequence[Token], place: int, options: Any, env: Env) -> str:
    token = tokens[place]
    href = str(token.attrs.get("href", ""))
    parts = urlsplit(href)
    if not parts.scheme and not href.startswith(("#", "//")):
        target = unquote(parts.path)
        own = env["links"].file(target) if _is_file(target) else env["links"].note(target)
        if own is None:
            token.attrs.pop("href", None)
            token.attrSet("class", "wikilink missing")
        else:
            token.attrSet("href", own + (f"#{parts.fragment}" if parts.fragment else ""))
            token.attrSet("class", "wikilink")
    return str(self.renderToken(tokens, place, options, env))


def _private(_: Any, tokens: Sequence[Token], place: int, __: Any, ___: Env) -> str:
    part: PrivatePart = tokens[place].meta["part"]
    kind = "screened" if part.is_hidden else "private-label"
    lines = f'data-line="{part.first}" data-end="{part.last}"'
    return f'<p class="{kind}" {lines}>{html.escape(", ".join(part.categories))}</p>\n'


def _tag(_: Any, tokens: Sequence[Token], place: int, __: Any, ___: Env) -> str:
    name = tokens[place].content
    return f'<a class="tag" href="/search?tag={quote(name)}">#{html.escape(name)}</a>'


def _task(_: Any, tokens: Sequence[Token], place: int, __: Any, ___: Env) -> str:
    mark = tokens[place].content
    done = "done" if mark in "xX" else "open" if mark == " " else "other"
    words = {"done": "Done: ", "open": "To do: "}.get(done, f"{html.escape(mark)}: ")
    return f'<span class="task" data-task="{done}" title="{words[:-2]}"></span>'


def _quote_open(self: Any, tokens: Sequence[Token], place: int, options: Any, env: Env) -> str:
    opened = str(self.renderToken(tokens, place, options, env))
    title = tokens[place].meta.get("title")
    return f'{opened}<p class="callout-title">{html.escape(title)}</p>' if title else opened


_RULES = {
    "private": _private,
    "wikilink": _wikilink,
    "embed": _embed,
    "image": _image,
    "link_open": _link_open,
    "tag": _tag,
    "task": _task,
    "blockquote_open": _quote_open,
}


def _is_file(target: str) -> bool:
    """Whether a link leads to a file that is not a note."""
    name = target.rpartition("/")[2].lower()
    return name.endswith((*_IMAGES, *_SOUNDS, ".pdf", ".svg"))


@cache
def _cleaner() -> nh3.Cleaner:
    everywhere = {"class", "id", "data-line", "data-end", "dir", "lang", "title"}
    return nh3.Cleaner(
        tags=_TAGS,
        clean_content_tags={"script", "style", "title", "textarea", "noscript", "template"},
        attributes={
            "*": everywhere,
            "a": {"href"},
            "audio": {"src", "controls", "preload"},
            "col": {"span"},
            "details": {"open"},
            "img": {"src", "alt", "width", "height", "loading"},
            "ol": {"start"},
            "span": {"data-task"},
            "td": {"colspan", "rowspan", "align"},
            "th": {"colspan", "rowspan", "align", "scope"},
        },
        attribute_filter=_attribute,
        url_schemes={"http", "https", "mailto", "obsidian"},
        link_rel="noopener noreferrer",
    )


def _attribute(tag: str, name: str, value: str) -> str | None:
    """The value of an attribute, or None to remove it."""
    if name == "href":
        scheme = urlsplit(value).scheme if ":" in value else ""
        return value if scheme or value.startswith(_OWN_PREFIXES) else None
    if name == "src":
        return value if value.startswith(_FILE) else None
    if name == "id":
        return value if _ID.fullmatch(value) else None
    if name == "class":
        kept = [one for one in value.split() if one in _CLASSES or _CLASS.fullmatch(one)]
        return " ".join(kept) or None
    return value
