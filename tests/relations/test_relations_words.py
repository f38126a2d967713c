"""Terms of any language out of Markdown: what is a word, what is mute, what is only markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_rag.notes import folded
from obsidian_rag.relations.words import (
    _TOKEN,
    _TYPOGRAPHY,
    Vocabulary,
    is_english,
    ngrams,
    prose,
)

GERMAN = "Der Regen und die Bäume sind nicht das Gleiche wie die Straße nach Süden."


def terms(text: str) -> list[str]:
    """The terms that a text says, without mute words and ends of lines."""
    vocabulary = Vocabulary()
    return [vocabulary.terms[number] for number in vocabulary.name(text)]


def heard(markdown: str) -> list[str]:
    return prose(markdown).split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Gardens gardening gardened GARDENER", ["garden", "garden", "garden", "garden"]),
        ("the relations of a note", ["relat", "note"]),
        ("ponies caresses", ["poni", "caress"]),
    ],
)
def test_english_words_are_stemmed_as_porter_does(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_stopwords_and_single_letters_are_mute() -> None:
    assert terms("This is the a I x 7 that don't, won't, they've and hers") == []


def test_mute_words_and_ends_of_lines_keep_their_places() -> None:
    vocabulary = Vocabulary()
    read = [vocabulary.terms[number] for number in vocabulary.read("the pond\n\nand sedge")]
    assert read == ["", "pond", "\n", "\n", "", "sedg"]


@pytest.mark.parametrize(
    ("word", "term"),
    [
        ("constructor", "constructor"),
        ("__proto__", "proto"),
        ("toString", "tostr"),
        ("hasOwnProperty", "hasownproperti"),
    ],
)
def test_words_that_every_object_of_javascript_has_are_words(word: str, term: str) -> None:
    """The original stops at a vault that contains one of them."""
    assert terms(f"{word} {word}") == [term, term]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café CAFÉ cafe\u0301 cafe", ["cafe", "cafe", "cafe", "cafe"]),
        ("Привет, мир! Ёлка", ["привет", "мир", "елка"]),
        ("日本語の本", ["日本", "本語", "語の", "の本"]),
        ("日", ["日"]),
        ("北京 Beijing", ["北京", "beij"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("שָׁלוֹם שלום", ["שלום", "שלום"]),
        ("مُحَمَّد محمد", ["محمد", "محمد"]),
        ("ﬁle ①②", ["file", "12"]),
        ("🎉 👩‍💻 ✅", []),
        ("snake_case_name", ["snake", "case", "name"]),
        ("größe_maß", ["gross", "mass"]),
        ("2024-03-10", ["2024", "03", "10"]),
    ],
)
def test_words_of_every_script(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_umlauts_are_folded_and_german_is_not_stemmed_as_english() -> None:
    found = terms(GERMAN)
    assert {"regen", "baume", "gleiche", "strasse", "suden"} <= set(found)
    assert terms("the gardens and the boxes") == ["garden", "box"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GERMAN, False),
        ("Il est important que les notes soient dans la même langue.", False),
        ("El jardín es muy grande y los árboles son altos.", False),
        ("Rain falls on the garden and it is good.", True),
        ("We ate at the Café de la Paix and it was good, so we stayed until the evening.", True),
        ("", True),
    ],
)
def test_a_text_is_english_unless_common_words_of_another_language_prevail(
    text: str, expected: bool
) -> None:
    assert is_english(folded(text).split()) is expected


def test_a_term_is_shown_as_the_first_word_that_was_read_as_it() -> None:
    vocabulary = Vocabulary()
    first, second = vocabulary.name("gardening gardens")
    assert first == second
    assert (vocabulary.terms[first], vocabulary.words[first]) == ("garden", "gardening")


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("[label](https://a.example/secret_path)", ["[label"]),
        ("[[Target|shown]] and [[Plain]]", ["shown", "and", "Plain"]),
        ("![[embedded.png]] ![alt](picture.png) x", ["x"]),
        ("<div class='wide'>text</div>", ["text"]),
        ("see https://a.example/b?c=d, obsidian://open?vault=x", ["see"]),
        ("a < b", ["a", "<", "b"]),
    ],
)
def test_markup_and_addresses_are_not_heard(markdown: str, expected: list[str]) -> None:
    assert heard(markdown) == expected


@pytest.mark.parametrize(
    "block",
    [
        "```\ncode\n```",
        "```python\ncode\n```",
        "````\n```\ncode\n````",
        "~~~\ncode\n~~~",
        "> ```\n> code\n> ```",
        "  ```\n  code\n  ```  ",
    ],
)
def test_fenced_code_is_not_heard(block: str) -> None:
    assert heard(f"before\n{block}\nafter") == ["before", "after"]


def test_an_open_fence_runs_to_the_end() -> None:
    assert heard("before\n```\ncode\nmore code") == ["before"]


def test_ticks_that_are_closed_on_their_line_open_nothing() -> None:
    assert heard("```inline```\nafter") == ["```inline```", "after"]


def test_inline_code_is_heard() -> None:
    assert terms("call `constructor` twice") == ["call", "constructor", "twice"]


@given(st.text(alphabet=st.sampled_from("a#[](){}<>!|`~\n\t> *_é漢/:"), max_size=200))
def test_prose_has_the_lines_of_its_markdown(markdown: str) -> None:
    assert prose(markdown).count("\n") == markdown.count("\n")


@given(st.text(max_size=60))
def test_no_term_is_blank_or_changes_when_it_is_read_with_other_texts(text: str) -> None:
    vocabulary = Vocabulary()
    vocabulary.read("something else, first")
    found = [vocabulary.terms[number] for number in vocabulary.name(text)]
    assert found == terms(text)
    assert all(term.strip() for term in found)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (2, ["po", "on", "nd", "ds"]),
        (3, ["pon", "ond", "nds"]),
        (4, ["pond", "onds"]),
        (5, ["ponds"]),
    ],
)
def test_ngrams_of_two_to_five_letters(size: int, expected: list[str]) -> None:
    assert ngrams("Ponds", size) == expected


def test_ngrams_ignore_case_accents_and_the_kind_of_blank() -> None:
    assert ngrams("Bög \t\n hut", 3) == ngrams("BOG HUT", 3)
    assert ngrams("aaaa", 3) == ["aaa"]
    assert ngrams("ab", 3) == ["ab"]
    assert ngrams(" \n ", 3) == []
    assert ngrams("京都の旅", 3) == ["京都の", "都の旅"]


def test_signs_that_are_left_out_first_hold_no_word() -> None:
    signs = [sign for sign in map(chr, range(0x20000)) if _TYPOGRAPHY.fullmatch(sign)]
    assert len(signs) > 1000
    assert [sign for sign in signs if _TOKEN.search(folded(sign))] == []


def test_plain_text_and_any_other_is_cut_alike() -> None:
    plain = "It's 2 o'clock_sharp:\n\tSee [A-1](x) (B2), \x1c\x0b end.\n\nLast"
    vocabulary = Vocabulary()
    assert vocabulary.read(plain).tolist() == vocabulary.read(f"{plain} ἀ").tolist()[:-1]
