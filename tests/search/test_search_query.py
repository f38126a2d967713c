"""Questions taken apart: words, phrases, exclusions and filters; what is not one stays text."""

from dataclasses import replace

import pytest

from obsidian_rag.search import DateRange, parse_property, parse_query
from obsidian_rag.search.query import PropertyFilter, Query


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("", Query("")),
        ("  \t\n ", Query("")),
        ("owe Sreenivas", Query("owe Sreenivas")),
        ('"rain garden"', Query("rain garden", phrases=("rain garden",))),
        ('the "rain garden" plan', Query("the rain garden plan", phrases=("rain garden",))),
        ('"a b" and "c d"', Query("a b and c d", phrases=("a b", "c d"))),
        ('" padded "', Query("padded", phrases=("padded",))),
        ('""', Query("")),
        ('"  "', Query("")),
        ("“rain garden”", Query("rain garden", phrases=("rain garden",))),
        ("„der Garten“ blüht", Query("der Garten blüht", phrases=("der Garten",))),
        ("«le jardin»", Query("le jardin", phrases=("le jardin",))),
        ('never "closed', Query("never closed")),
        ("roof -gutter", Query("roof", excluded=("gutter",))),
        ('roof -"green roof"', Query("roof", excluded=("green roof",))),
        ("-roof -gutter", Query("", excluded=("roof", "gutter"))),
        ("well-known e-mail", Query("well-known e-mail")),
        ("roof NOT gutter", Query("roof", excluded=("gutter",))),
        ('roof NOT "green roof" plan', Query("roof plan", excluded=("green roof",))),
        ("NOT gutter", Query("", excluded=("gutter",))),
        ("roof NOT", Query("roof NOT")),
        ("column IS NOT NULL", Query("column IS NOT NULL")),
        ("MODULE NOT FOUND", Query("MODULE NOT FOUND")),
        ("do not paint", Query("do not paint")),
        ("path:src/ roof -gutter", Query("roof", excluded=("gutter",), paths=("src/",))),
        (
            "prop:a=b roof -gutter",
            Query("roof", excluded=("gutter",), properties=(PropertyFilter("a", "b", "b"),)),
        ),
        (
            "https://example.org/a/b/ -gutter",
            Query("https://example.org/a/b/", excluded=("gutter",)),
        ),
        ("and/or -gutter", Query("and/or", excluded=("gutter",))),
        ("make soup -salt", Query("make soup", excluded=("salt",))),
        ("cold snap -5 degrees", Query("cold snap -5 degrees")),
        ("сад -крыша", Query("сад", excluded=("крыша",))),
        ("tag:health", Query("", tags=("health",))),
        ("tag:#health/sleep nap", Query("nap", tags=("#health/sleep",))),
        ("TAG:health", Query("", tags=("health",))),
        ("tag:a tag:b", Query("", tags=("a", "b"))),
        ("path:Journal", Query("", paths=("Journal",))),
        ('path:"Daily Life Stuff" milk', Query("milk", paths=("Daily Life Stuff",))),
        ("path:“Daily Life” milk", Query("milk", paths=("Daily Life",))),
        ("tag:", Query("tag:")),
        ("path: Journal", Query("path: Journal")),
    ],
)
def test_a_question_is_taken_apart(question: str, expected: Query) -> None:
    assert parse_query(question) == expected


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("after:2024", "2024-01-01", None),
        ("after:2024-03", "2024-03-01", None),
        ("after:2024-3-5", "2024-03-05", None),
        ("before:2024", None, "2023-12-31"),
        ("before:2024-03", None, "2024-02-29"),
        ("before:2024-03-15", None, "2024-03-14"),
        ("after:2024 before:2024-06-15", "2024-01-01", "2024-06-14"),
        ("after:2023 after:2024", "2024-01-01", None),
        ("before:2025 before:2024", None, "2023-12-31"),
        ("BEFORE:2024-03-01 rain", None, "2024-02-29"),
    ],
)
def test_before_and_after_are_days(question: str, first: str | None, last: str | None) -> None:
    assert parse_query(question).dates == DateRange(first, last)


@pytest.mark.parametrize(
    "word",
    [
        "before:noon",
        "after:2024-13",
        "after:2023-02-29",
        "before:24",
        "after:0000",
        "after:2024-03-15T10:00",
        "prop:rating",
        "prop:=4",
        "prop:rating=",
        "https://example.org/tag:x?a=b",
        "http://localhost:11434",
        "10:30",
        "re:invent",
        "C:/Users",
        "std::vector",
        "a=b",
    ],
)
def test_what_is_no_filter_stays_text(word: str) -> None:
    query = parse_query(f"see {word} there")
    assert replace(query, is_command=False) == Query(f"see {word} there")


def test_the_first_day_there_is_has_no_day_before_it() -> None:
    """`before:0001` must be text or admit nothing; it may not fail."""
    parse_query("before:0001-01-01 rain")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rating=4", PropertyFilter("rating", "4", "4")),
        ("rating>4", PropertyFilter("rating", low="4", is_open_low=True)),
        ("rating>=4", PropertyFilter("rating", low="4")),
        ("rating<4.5", PropertyFilter("rating", high="4.5", is_open_high=True)),
        ("rating<=4", PropertyFilter("rating", high="4")),
        ("rating=3..5", PropertyFilter("rating", "3", "5")),
        ("rating=3..", PropertyFilter("rating", "3", None)),
        ("rating=..5", PropertyFilter("rating", None, "5")),
        ("due>=2024-03-01", PropertyFilter("due", low="2024-03-01")),
        ("due=2024-01-01..2024-12-31", PropertyFilter("due", "2024-01-01", "2024-12-31")),
        (" author = Le Guin ", PropertyFilter("author", "Le Guin", "Le Guin")),
        ("status=-", PropertyFilter("status", "-", "-")),
    ],
)
def test_a_property_is_an_equality_or_a_range(text: str, expected: PropertyFilter) -> None:
    assert parse_property(text) == expected
    assert parse_query(f'prop:"{text.strip()}"').properties == (expected,)


def test_a_property_of_one_word_needs_no_quotes() -> None:
    query = parse_query("novels prop:rating>=4 prop:status=done")
    assert query.text == "novels"
    assert query.properties == (
        PropertyFilter("rating", low="4"),
        PropertyFilter("status", "done", "done"),
    )


@pytest.mark.parametrize(
    "text", ["", "rating", "=4", "rating=", "rating!=4", ">=", "rating>=", "rating<= ", "rating=="]
)
def test_what_is_no_property_filter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="key=value"):
        parse_property(text)


@pytest.mark.parametrize("question", ['prop:"author=Le Guin"', 'prop:author="Le Guin"'])
def test_a_property_of_several_words_may_be_quoted_whole_or_by_its_value(question: str) -> None:
    query = parse_query(f"{question} novels")
    assert query.properties == (PropertyFilter("author", "Le Guin", "Le Guin"),)
    assert query.text == "novels"


@pytest.mark.parametrize(
    "pasted",
    [
        "git rebase -i HEAD~3",
        "git log -oneline",
        "tar -xzf a.tar.gz",
        "rsync -av --delete src/ dst/",
        "docker run -it --rm x",
        "ls -la",
        "sudo rm -rf build",
        "kubectl get pods -n kube-system",
        "kubectl get pods -namespace kube-system",
        "find . -name foo.md -delete | xargs rm",
        "./configure -prefix /opt",
        "java -Dkey=value -jar app.jar",
        "cat ~/.bashrc -number",
        "echo $HOME -verbose",
        "make -j 4",
        "ps aux > out.txt -force",
        "for f in *; do mv -force x; done",
        "Error: ENOENT: no such file or directory, open '/tmp/x'",
        "TypeError: 'NoneType' object is not subscriptable",
        "fatal: refusing to merge -unrelated histories",
        "C:\\Users\\me -hidden",
        "foo() -bar",
    ],
)
def test_a_pasted_command_or_message_is_searched_as_it_is(pasted: str) -> None:
    assert parse_query(pasted) == Query(pasted, is_command=True)
    assert parse_query(f"{pasted} tag:shell") == Query(pasted, tags=("shell",), is_command=True)


def test_in_a_command_quotes_ask_for_nothing_and_exclusions_must_be_plain() -> None:
    query = parse_query('git commit -m "fix the roof" NOT gutter -"flat roof"')
    assert query.text == "git commit -m fix the roof"
    assert query.phrases == ()
    assert query.excluded == ("gutter", "flat roof")


@pytest.mark.parametrize(
    "question",
    [
        "how do I fix the roof?",
        "who said: never again?",
        "what is 3 > 2",
        "garden -roof -gutter",
        "e-mail from Ada & Bob (2024)",
        "50 % off; or was it 40?",
        "an error in my tax return",
        "the error I made: too late",
        "warning signs of burnout",
        "exactly: which one?",
        "terror: a history",
        "minus -5 degrees",
    ],
)
def test_a_question_in_natural_words_is_no_command(question: str) -> None:
    assert not parse_query(question).is_command
