"""Notes that the sample vault does not have: every kind of mark, and hostile ones."""

import base64
import struct
import zlib


def picture(width: int = 40, height: int = 30) -> bytes:
    """A small blue PNG."""

    def part(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x4a\x48\xc9" * width for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (part(b"IHDR", head), part(b"IDAT", zlib.compress(rows)), part(b"IEND", b""))
    )


MARKS = """---
tags: [kinds]
status: done
---
# All kinds of marks

A [[Rain garden|link]], a [[Nowhere at all]], ==a **bright** mark==, #water/clean and a note[^1].
%%never shown%% Inline math $e^{i\\pi}$ and `code`.

![[dot.png|80]]

![[Rain garden#Shape]]

> [!warning] Mind the step
> It is icy.

- [ ] open task
- [x] finished task

| a | b |
|---|---|
| 1 | [[Debts\\|owed]] |

```python
def answer() -> int:
    return 42
```

%%
a comment of
several lines
%%

![far](http://evil.test/pixel.png)

[^1]: The small print.
"""
EVIL_SVG = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>").decode()
# One line each: what people have tried on renderers of Markdown.
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))",
    '<a href="\x01javascript:alert(1)">a</a>',
    '<a href="data:text/html,<script>alert(1)</script>">a</a>',
    f"![x](data:image/svg+xml;base64,{EVIL_SVG})",
    "<svg><script>alert(1)</script></svg>",
    '<svg><a xlink:href="javascript:alert(1)"><text>a</text></a></svg>',
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "<form action=//evil.test><button formaction=javascript:alert(1)>go</button></form>",
    "<style>*{background:url(//evil.test)}</style>",
    '<p style="position:fixed;inset:0">over all</p>',
    '<meta http-equiv=refresh content="0;url=//evil.test">',
    "<base href=//evil.test>",
    '<img src=//evil.test/p.gif srcset="//evil.test/q.gif 1x">',
    '[[x" onmouseover="alert(1)]]',
    "![[../../../../etc/passwd]]",
    "![[../../../../etc/passwd.png]]",
    '```"><img/src=x/onerror=alert(1)>\ncode\n```',
    "$</span><script>alert(1)</script>$",
    '#tag"><script>alert(1)</script>',
    "<div id=main class=toast><input id=said></div>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>',
    "a\u202eevil [x](http://good.example@evil.test)",
    '<audio src="http://evil.test/a.mp3" autoplay></audio>',
    '<a href="//evil.test/x">a</a>',
    "<details open ontoggle=alert(1)><summary>a</summary></details>",
    "<object data=//evil.test></object><embed src=//evil.test>",
]
NOTES: dict[str, str | bytes] = {
    "Kinds/Marks.md": MARKS,
    "Kinds/dot.png": picture(),
    "Kinds/Picture.svg": "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    "Kinds/Secret diary.md": "---\nrag: private\n---\n# Diary\n\nThe zeppelin lands at dawn.\n",
    "Kinds/Right to left.md": "# יומן המסע\n\nיצאנו עם שחר אל ההרים.\n",
    "Kinds/日本の旅.md": "# 日本の旅\n\n京都では庭園を見ました。とても静かでした。\n",
    "Kinds/" + "A very long title that goes on " * 4 + "and on.md": "# "
    + "A very long title that goes on " * 6
    + "\n\nIts text is short.\n",
    "Hostile/All.md": "# All at once\n\n" + "\n\n".join(HOSTILE) + "\n",
    **{f"Hostile/Line {n:02}.md": f"{line}\n" for n, line in enumerate(HOSTILE)},
}
