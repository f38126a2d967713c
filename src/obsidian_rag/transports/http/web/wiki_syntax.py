"""What Obsidian adds to Markdown: wikilinks, embeds, tags, highlights, comments, callouts, tasks.

Rules for markdown-it. They only make tokens; `markdown` says what becomes of links and embeds.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_WIKILINK = re.compile(r"(!?)\[\[([^\[\]\n|]{1,400}?)(?:\\?\|([^\[\]\n]{0,400}))?\]\]")
_TAG = re.compile(r"#([^\W_][\w/-]*|_[\w/-]+)")
_BEFORE_TAG = frozenset(" \t\n([,;:>")
_BLOCK_ID = re.compile(r"\^[\w-]{1,80}(?=\s*$)", re.MULTILINE)
_CALLOUT = re.compile(r"\[!([\w-]{1,30})\]([+-]?)[ \t]*(.*)")
_TASK = re.compile(r"\[(.)\] ")
_KINDS = {
    "caution": "warning", "attention": "warning", "error": "danger", "bug": "danger",
    "failure": "danger", "fail": "danger", "missing": "danger", "hint": "tip", "important": "tip",
    "check": "success", "done": "success", "help": "question", "faq": "question",
    "cite": "quote", "summary": "info", "abstract": "info", "tldr": "info", "todo": "info",
    "example": "info",
}  # fmt: skip
CALLOUTS = frozenset({"note", "info", "tip", "success", "question", "warning", "danger", "quote"})


def use_wiki_syntax(md: MarkdownIt) -> None:
    """Add all rules."""
    md.inline.ruler.before("link", "wikilink", _wikilink)
    md.inline.ruler.before("link", "tag", _tag)
    md.inline.ruler.before("emphasis", "highlight", _highlight)
    md.inline.ruler.before("emphasis", "comment", _comment)
    md.inline.ruler.before("emphasis", "block_id", _block_id)
    md.block.ruler.before("fence", "block_comment", _block_comment, {"alt": ["paragraph"]})
    md.core.ruler.before("inline", "callout", _callouts)
    md.core.ruler.after("inline", "task", _tasks)


def _wikilink(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "![":
        return False
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    if found is None or state.linkLevel:
        return False
    if not silent:
        token = state.push("embed" if found[1] else "wikilink", "", 0)
        target, _, heading = found[2].strip().partition("#")
        token.meta = {"target": target.strip(), "heading": heading.strip(), "label": found[3]}
    state.pos = found.end()
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "#" or (state.pos and state.src[state.pos - 1] not in _BEFORE_TAG):
        return False
    found = _TAG.match(state.src, state.pos, state.posMax)
    if found is None or found[1].isdigit() or state.linkLevel:
        return False
    if not silent:
        state.push("tag", "", 0).content = found[1].rstrip("/")
    state.pos = found.end()
    return True


def _highlight(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith("==", state.pos):
        return False
    start, end = state.pos + 2, state.src.find("==", state.pos + 2, state.posMax)
    if end <= start or "\n\n" in state.src[start:end]:
        return False
    if not silent:
        most = state.posMax
        state.push("mark_open", "mark", 1)
        state.pos, state.posMax = start, end
        state.md.inline.tokenize(state)
        state.push("mark_close", "mark", -1)
        state.posMax = most
    state.pos = end + 2
    return True


def _comment(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith("%%", state.pos):
        return False
    end = state.src.find("%%", state.pos + 2, state.posMax)
    if end < 0:
        return False
    state.pos = end + 2
    return True


def _block_id(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "^":
        return False
    found = _BLOCK_ID.match(state.src, state.pos, state.posMax)
    if found is None or (state.pos and not state.src[state.pos - 1].isspace()):
        return False
    state.pos = found.end()
    return True


def _block_comment(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    if state.is_code_block(first) or not _line(state, first).startswith("%%"):
        return False
    if "%%" in _line(state, first)[2:]:
        return False  # begins and ends on one line: an inline comment
    end = next((n for n in range(first + 1, last) if "%%" in _line(state, n)), None)
    if end is None:
        return False
    if not silent:
        state.line = end + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _callouts(state: StateCore) -> None:
    for place, token in enumerate(state.tokens[:-2]):
        if token.type != "blockquote_open" or state.tokens[place + 1].type != "paragraph_open":
            continue
        inline = state.tokens[place + 2]
        first, _, rest = inline.content.partition("\n")
        found = _CALLOUT.fullmatch(first.strip())
        if found is None:
            continue
        kind = found[1].lower()
        kind = _KINDS.get(kind, kind)
        token.attrSet("class", f"callout callout-{kind if kind in CALLOUTS else 'note'}")
        token.meta["title"] = found[3].strip() or found[1].replace("-", " ").capitalize()
        inline.content = rest


def _tasks(state: StateCore) -> None:
    for item, inline in _items(state.tokens):
        if not inline.children or inline.children[0].type != "text":
            continue
        text = inline.children[0]
        if found := _TASK.match(text.content):
            item.attrSet("class", "task-item")
            text.content = text.content[found.end() :]
            box = Token("task", "", 0)
            box.content = found[1]
            inline.children.insert(0, box)


def _items(tokens: list[Token]) -> Iterator[tuple[Token, Token]]:
    """Each list item with its first text token."""
    for place, token in enumerate(tokens[:-2]):
        if token.type == "list_item_open" and tokens[place + 2].type == "inline":
            yield token, tokens[place + 2]
