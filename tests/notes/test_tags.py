import pytest

from obsidian_rag.notes import parse_note


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("#one and #two-b_c/d, (#three) #four.", ("#one", "#two-b_c/d", "#three", "#four")),
        ("#1984 #y1984 #2024-01 #-- #/", ("#y1984", "#2024-01")),
        ("a#b http://x.org/#c [t](#d) [[e#f]] [[g #h]] [i](j.md#k)", ()),
        ("`#code` ``#code ` `` #real", ("#real",)),
        ("`x`#no", ()),
        ('<a href="x" style="color: #fff">b</a> #yes', ("#yes",)),
        ("日本 #日本語 #über #🎉party。 #标签，后", ("#日本語", "#über", "#🎉party", "#标签")),
        ("#Same #same #a/b/ x", ("#Same", "#a/b")),
        ("# heading with #tag", ("#tag",)),
        ("\\#escaped c#sharp", ()),
    ],
)
def test_inline_tags(line: str, tags: tuple[str, ...]) -> None:
    assert parse_note("a.md", f"text\n{line}\n").tags == tags


@pytest.mark.parametrize(
    "value", ["[a, b/c]", "a, b/c", "a b/c", "'#a #b/c'", "\n  - a\n  - '#b/c'", "\n- a\n- b/c/"]
)
def test_frontmatter_tags_in_every_form(value: str) -> None:
    note = parse_note("a.md", f"---\ntags: {value}\n---\n#A and #inline x\n")
    assert note.frontmatter_tags == ("#a", "#b/c")
    assert note.tags == ("#a", "#b/c", "#inline")
