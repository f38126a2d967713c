"""Words of all scripts: where they end, which forms are one, and which of a question tell."""

import sys
import unicodedata
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.search.indexed import hits, indexed, write_notes

from obsidian_rag.engine import Engine
from obsidian_rag.notes import WORD, sensitive_categories
from obsidian_rag.search.words import (
    folded,
    has_phrase,
    question_words,
    root,
    word_query,
    word_set,
    words_in,
)

# Of each script: a note, a question about it, and the words that a reader would see matched.
SCRIPTS = {
    "Hindi": (
        "दिल्ली भारत की राजधानी है और यमुना नदी के किनारे बसी है।",
        "भारत की राजधानी क्या है?",
        ("भारत", "राजधानी"),
    ),
    "Bengali": (
        "ঢাকা বাংলাদেশের রাজধানী, বুড়িগঙ্গা নদীর তীরে।",
        "বাংলাদেশের রাজধানী কোনটি?",
        ("বাংলাদেশের", "রাজধানী"),
    ),
    "Tamil": ("சென்னை தமிழ்நாட்டின் தலைநகரம் ஆகும்.", "தமிழ்நாட்டின் தலைநகரம்", ("தமிழ்நாட்டின்", "தலைநகரம்")),
    "Thai": (
        "หลังคาบ้านรั่วเมื่อฝนตกหนัก ช่างซ่อมหลังคามาวันศุกร์",
        "ใครซ่อมหลังคา",
        ("ซ่อมหลังคา",),
    ),
    "Lao": ("ຫຼວງພະບາງເປັນເມືອງມໍລະດົກໂລກ", "ເມືອງມໍລະດົກຢູ່ໃສ", ("ເມືອງມໍລະດົກ",)),
    "Khmer": ("ភ្នំពេញជារាជធានីនៃប្រទេសកម្ពុជា", "រាជធានីកម្ពុជា", ("រាជធានី", "កម្ពុជា")),
    "Burmese": ("ရန်ကုန်မြို့သည် မြန်မာနိုင်ငံ၏ အကြီးဆုံးမြို့ဖြစ်သည်", "မြန်မာနိုင်ငံ", ("မြန်မာနိုင်ငံ",)),
    "Chinese": ("北京是中国的首都,有三千年历史。", "中国的首都是什么", ("中国", "首都")),
    "Japanese": ("京都で湯豆腐と抹茶の菓子を食べた。", "京都の抹茶はどこですか", ("京都", "抹茶")),
    "Korean": (
        "냉장고를 고치는 기사의 전화번호는 서랍에 있다.",
        "기사의 전화번호",
        ("기사의", "전화번호"),
    ),
    "Arabic": ("القَاهِرَة عاصمة مصر وتقع على نهر النيل.", "ما هي عاصمة مصر؟", ("عاصمة", "مصر")),
    "Persian": (
        "می‌خواهم پنجره‌های آشپزخانه را رنگ کنم.",
        "پنجره‌های آشپزخانه",
        ("پنجرههای", "اشپزخانه"),
    ),
    "Hebrew": ("ירושלים היא עיר הבירה של ישראל.", "עיר הבירה", ("עיר", "הבירה")),
    "Russian": (
        "Протекает крыша сарая, чинил сосед Игорь.",
        "кто чинил крышу?",
        ("чинил", "крышу"),
    ),
    "Greek": (
        "Το κλειδί της αποθήκης είναι κάτω από τη γλάστρα.",
        "κλειδί αποθήκης",
        ("κλειδι", "αποθηκησ"),
    ),
    "Turkish": (
        "Isırgan çorbası tarifini İstanbul'da annemden aldım.",
        "ısırgan çorbası",
        ("isirgan", "corbasi"),
    ),
    "Vietnamese": ("Đường ống nước ở Hà Nội bị vỡ.", "đường ống nước", ("duong", "ong", "nuoc")),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    root_folder = tmp_path_factory.mktemp("scripts")
    notes = {f"{script}.md": f"{text}\n" for script, (text, _, _) in SCRIPTS.items()}
    vault = write_notes(root_folder / "vault", notes)
    with closing(indexed(root_folder / "home", vault)) as engine:
        yield engine


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_question_of_any_script_finds_its_note(engine: Engine, script: str) -> None:
    text, question, words = SCRIPTS[script]
    best = hits(engine, question)[0]
    assert best.source_file == f"{script}.md"
    assert best.why.terms[: len(words)] == words
    assert set(best.why.terms) == set(words)


def roots(text: str) -> set[str]:
    return {root(word) for word in word_set(text)}


@pytest.mark.parametrize("script", SCRIPTS)
def test_coverage_counts_whole_words_of_any_script(script: str) -> None:
    text, question, _ = SCRIPTS[script]
    keywords = question_words(question)
    there = roots(text)
    found = [word for word in keywords if root(word) in there]
    assert len(found) >= 0.6 * len(keywords)
    others = roots(" ".join(note for name, (note, _, _) in SCRIPTS.items() if name != script))
    assert not any(root(word) in others for word in keywords)


def test_every_combining_mark_stays_in_its_word() -> None:
    marks = [
        chr(code)
        for code in range(0x300, 0x10000)
        if unicodedata.category(chr(code)) in ("Mn", "Mc")
    ]
    assert len(marks) > 1000
    assert [mark for mark in marks if WORD.findall(f"a{mark}b") != [f"a{mark}b"]] == []


def test_no_sign_that_is_not_of_a_word_joins_two() -> None:
    joining = [
        f"{code:x}"
        for code in range(0x20, sys.maxunicode)
        if unicodedata.category(chr(code))[0] in "PSZ"
        and not 0x11000 <= code < 0x12000
        and chr(code) != "_"
        and unicodedata.category(chr(code)) != "Pc"
        and len(WORD.findall(f"a{chr(code)}b")) < 2
    ]
    assert joining == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café", "cafe"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
        ("Ёлка", "елка"),
        ("Йод", "йод"),
        ("Київ", "київ"),
        ("ﬁne", "fine"),
        ("Ｆｕｌｌ", "full"),
        ("한국어", "한국어"),
        ("İSTANBUL ısırgan", "istanbul isirgan"),
        ("Đà Nẵng", "da nang"),
        ("smørrebrød", "smorrebrod"),
        ("दिल्ली", "दिल्ली"),
        ("ក្រុង", "ក្រុង"),
        ("คำถาม", "คำถาม"),
        ("ガギ", "ガギ"),
        ("السَّلام", "السلام"),
        ("أحمد", "احمد"),
        ("שָׁלוֹם", "שלום"),
        ("می‌خواهم", "میخواهم"),
        ("1️⃣", "1"),
    ],
)
def test_folding_forgets_case_accents_and_width_but_no_vowel(text: str, expected: str) -> None:
    assert folded(text) == expected
    assert folded(unicodedata.normalize("NFD", text)) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much do I owe Sreenivas?", ("owe", "sreenivas")),
        ("owe OWE owe", ("owe",)),
        ("who is it?", ("who", "is", "it")),
        ("", ()),
        ("?!", ()),
        ("hey whats the number of the guy who fixed my roof", ("number", "fixed", "roof")),
        ("can you tell me where did i write about the boiler stuff", ("boiler",)),
        ("I think I'm looking for the thing with the valve", ("valve",)),
        ("notes about thinking fast", ("thinking", "fast")),
        ("remind me how to find the sum", ("find", "sum")),
        ("what did i write", ("write",)),
        ("the thing", ("the", "thing")),
        ("Kannst du mir sagen, wo die Steuererklärung ist?", ("steuererklarung",)),
        ("où est la clé de la cave ?", ("cle", "cave")),
        ("¿dónde está la llave del sótano?", ("llave", "sotano")),
        ("dove sono le chiavi della cantina?", ("chiavi", "cantina")),
        ("onde está a chave da adega?", ("chave", "adega")),
        ("waar is de sleutel van de kelder?", ("sleutel", "kelder")),
        ("где лежит ключ от подвала?", ("лежит", "ключ", "подвала")),
        ("bodrumun anahtarı nerede?", ("bodrumun", "anahtari")),
        ("أين مفتاح القبو؟", ("مفتاح", "القبو")),
        ("तहखाने की चाबी कहाँ है?", ("तहखाने", "चाबी")),
        ("钥匙在哪里?", ("钥匙", "匙在")),
        ("กุญแจอยู่ที่ไหน", ("กุญ", "ญแ", "แจ", "จอ", "อยู่")),
        ("열쇠는 어디에 있는 것입니까", ("열쇠는",)),
    ],
)
def test_the_words_of_a_question_are_those_that_tell(
    question: str, expected: tuple[str, ...]
) -> None:
    assert question_words(question) == expected


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("invoice", "two invoices"),
        ("invoices", "the invoice"),
        ("running", "he runs"),
        ("miete", "die Mieten steigen"),
        ("casa", "las casas"),
        ("крышу", "крыша"),
        ("столица", "в столице"),
        ("किताब", "किताबें"),
        ("كتاب", "الكتاب"),
        ("열쇠는", "열쇠를"),
        ("2024", "in 2024"),
    ],
)
def test_forms_of_one_word_cover_each_other(word: str, text: str) -> None:
    assert root(word) in roots(text)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("ours", "the neighbours"),
        ("rain", "a train in Ukraine"),
        ("art", "a party"),
        ("2024", "20245"),
        ("दिल", "दिल्ली"),
        ("steuer", "Steuererklärung"),
    ],
)
def test_a_part_of_a_word_does_not_cover_it(word: str, text: str) -> None:
    assert root(word) not in roots(text)


def test_a_root_is_its_own_root_often_enough_to_be_compared() -> None:
    assert root("mieten") == root("miete") == "miet"
    assert root("ab") == "ab"


def test_the_words_of_a_text_are_whole_and_folded() -> None:
    assert word_set("Über Café, über") == {"uber", "cafe"}
    assert word_set("東京都") == {"東京", "京都"}
    assert word_set("") == frozenset()


def test_neighbouring_words_are_looked_up_as_one_too() -> None:
    words = word_query("my mental health").split()
    assert {"mental", "health", "mentalhealth"} <= set(words)
    assert "my" not in words


def test_what_the_store_keeps_as_one_word_is_looked_up_as_it_is_written() -> None:
    assert {"tar", "gz", "a.tar.gz"} <= set(word_query("unpack a.tar.gz").split())
    assert {"école", "l'école"} <= set(word_query("où est l'école").split())


def test_words_match_in_other_forms() -> None:
    assert words_in(("chains", "clean", "oil"), "cleaning a chain") == ("chains", "clean")


def test_pieces_that_follow_each_other_match_as_one_word() -> None:
    question = question_words("京都の食べ物")
    assert words_in(question, "京都で食べ物を買う") == ("京都", "食べ物")
    assert words_in(question, "東京") == ()


def test_a_phrase_stands_as_whole_words() -> None:
    assert has_phrase("A rain garden, wet", "Rain Garden")
    assert not has_phrase("a train gardener", "rain garden")
    assert has_phrase("दिल्ली भारत की राजधानी", "भारत की")
    assert not has_phrase("दिल्ली", "दिल")


@pytest.mark.parametrize("tag", ["स्वास्थ्य", "สุขภาพ/การนอน", "سلامتی‌ها", "health"])
def test_a_tag_of_any_script_is_read_whole_where_it_may_be_sensitive(tag: str) -> None:
    patterns = {"health": (f"#{tag}",)}
    assert sensitive_categories(f"slept #{tag} well", None, (), patterns, ()) == ("health",)
