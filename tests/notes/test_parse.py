import pytest

from obsidian_rag.notes import Heading, Link, LinkKind, RagPolicy, parse_note


def test_title_comes_from_frontmatter_then_first_h1_then_file_name() -> None:
    assert parse_note("a/b.md", "---\ntitle: Front\n---\n# One\n").title == "Front"
    assert parse_note("a/b.md", "## Two\n# One\n# Other\n").title == "One"
    assert parse_note("a/b.md", "One\n===\n").title == "One"
    assert parse_note("a/My note.md", "## Two\n").title == "My note"
    assert parse_note("a.md", "---\ntitle: 42\n---\n").title == "42"


def test_a_tag_line_is_never_the_title() -> None:
    assert parse_note("day.md", "#mentalhealth\nslept well\n").title == "day"


def test_title_and_headings_lose_markup_and_keep_words() -> None:
    note = parse_note("a.md", "# [The `<video>` **tag**](video.md)\n## [[x|Why]]\n")
    assert note.title == "The video tag"
    assert [head.text for head in note.headings] == ["The video tag", "Why"]


def test_headings_of_every_kind_with_their_file_lines() -> None:
    text = (
        "---\ntitle: x\n---\n# One #\n   ## Two ##\n#nospace\n####### seven\n"
        "\nSetext one\n===\n\nSetext two\n---\n#a #b/c\nC# is #1\n"
    )
    assert parse_note("a.md", text).headings == (
        Heading(1, "One", 4),
        Heading(2, "Two", 5),
        Heading(0, "#nospace", 6),
        Heading(1, "Setext one", 9),
        Heading(2, "Setext two", 12),
        Heading(0, "#a #b/c", 14),
    )


def test_rules_tables_and_lists_are_no_setext_headings() -> None:
    text = "a\nb\n---\n\n- item\n---\n\n| a |\n|---|\n\n> q\n---\n\n---\n# h\n---\n"
    assert parse_note("a.md", text).headings == (Heading(1, "h", 15),)


def test_nothing_is_found_in_code() -> None:
    text = (
        "```\n# no\n#no\n[[no]]\n- [ ] no\n```\n~~~~\n~~~\n[[no]]\n~~~~\n"
        "> ```\n> [[no]]\n[[yes]] `[[no]] #no` ``#no ` [[no]]``\n    ```\n    # no\n    ```\n"
    )
    note = parse_note("a.md", text)
    assert note.headings == () and note.tags == ()
    assert [link.target for link in note.links] == ["yes"]


def test_an_open_fence_runs_to_the_end() -> None:
    assert parse_note("a.md", "# a\n```\n# b\n").headings == (Heading(1, "a", 1),)


def test_links_of_every_kind() -> None:
    text = (
        "[[a]] ![[b.png|100]] [[c#h|d]] [[e#^id]] [[#own]]\n"
        "[t](f%20g.md#h%20i) ![alt](<my pic.png> 'title') [x](https://e.org) [m](mailto:a@b.c)\n"
        "| [[t\\|shown]] |\n[![img](in.png)](out.md)\n[ref]: r.md\n[^1]: foot.md\n[w](w_(x).md)\n"
    )
    wiki, embed, markdown = LinkKind.WIKILINK, LinkKind.EMBED, LinkKind.MARKDOWN
    assert parse_note("a.md", text).links == (
        Link(wiki, "a", None, None, None, 1),
        Link(embed, "b.png", None, None, "100", 1),
        Link(wiki, "c", "h", None, "d", 1),
        Link(wiki, "e", None, "id", None, 1),
        Link(wiki, "", "own", None, None, 1),
        Link(markdown, "f g.md", "h i", None, "t", 2),
        Link(embed, "my pic.png", None, None, "alt", 2),
        Link(wiki, "t", None, None, "shown", 3),
        Link(embed, "in.png", None, None, "img", 4),
        Link(markdown, "out.md", None, None, "![img](in.png)", 4),
        Link(markdown, "r.md", None, None, "ref", 5),
        Link(markdown, "w_(x).md", None, None, "w", 7),
    )


def test_links_in_properties_count() -> None:
    note = parse_note("a.md", '---\nup: "[[Parent]]"\n---\n[[b]]\n')
    assert [(link.target, link.line) for link in note.links] == [("Parent", 2), ("b", 4)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_counts_once(end: str) -> None:
    text = end.join(["\ufeff---", "tags: a", "---", "", "# h", "[[x]]", "\x0b\u2028\x85 # no"])
    note = parse_note("a.md", text)
    assert note.body_line == 4
    assert note.headings == (Heading(1, "h", 5),)
    assert note.links[0].line == 6
    assert note.text is text


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("false", RagPolicy.NEVER),
        ("no", RagPolicy.NEVER),
        ("Never", RagPolicy.NEVER),
        ("'false'", RagPolicy.NEVER),
        ("private", RagPolicy.PRIVATE),
        ("true", RagPolicy.INDEX),
        ("", RagPolicy.INDEX),
    ],
)
def test_policy_follows_the_rag_property(written: str, policy: RagPolicy) -> None:
    assert parse_note("a.md", f"---\nrag: {written}\n---\n").policy is policy


def test_policy_is_obeyed_when_the_yaml_is_broken_or_not_closed() -> None:
    broken = parse_note("a.md", "---\ntitle: {{title}}\nrag: private\n---\nbody\n")
    assert broken.policy is RagPolicy.PRIVATE
    assert broken.parse_error and broken.frontmatter == {} and broken.body_line == 5
    assert parse_note("a.md", "---\nrag: false\nbody\n").policy is RagPolicy.NEVER
    assert parse_note("a.md", "text\nrag: false\n").policy is RagPolicy.INDEX


def test_aliases_are_a_list_or_a_string() -> None:
    assert parse_note("a.md", "---\naliases: [x, y z]\n---\n").aliases == ("x", "y z")
    assert parse_note("a.md", "---\nalias: x, y z,\n---\n").aliases == ("x", "y z")
    assert parse_note("a.md", "---\naliases:\n  - 1\n  - b\n---\n").aliases == ("1", "b")
    assert parse_note("a.md", "---\naliases:\n---\n").aliases == ()
