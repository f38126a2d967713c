"""Questions to one rich vault, through real files, SQLite, LanceDB and the builtin embedder."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.search.indexed import asked, files, hits, indexed, open_engine, write_notes

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.index import Mode
from obsidian_rag.search import DateRange, Filters, Signals
from obsidian_rag.search.query import PropertyFilter

FILLER = " ".join(f"pebble{number} lantern{number}" for number in range(40))
NOTES = {
    "Finance/Debts.md": "# Debts\n\nI owe Sreenivas 1,480 dollars for the boiler.\n",
    "Finance/Budget.md": "# Budget\n\nRent is due on the first. Savings go up slowly.\n",
    "Home/Boiler.md": "---\naliases: [Furnace, Heating machine]\n---\n# Boiler\n\n"
    "## Error codes\n\nF22 means that the pressure is low.\n\n## Service\n\nOnce a year in May.\n",
    "Home/Fahrradpflege.md": "# Werkstatt\n\nDie Fahrradkettenreinigung mache ich im Frühjahr.\n",
    "Home/Reifen.md": "# Reifen\n\nDer Luftdruck im Reifen soll vier bar betragen.\n",
    "Projects/Rain garden.md": "---\ntags: [project/garden]\nrating: 5\nstatus: done\n"
    "due: 2024-05-01\n---\n# Rain garden\n\nPlants that drink water: blue flag, sedge, joe-pye.\n",
    "Projects/Green roof.md": "---\ntags: [project/roof]\nrating: 3\nstatus: Open\n"
    "due: 2025-02-10\n---\n# Green roof\n\nSedum on the roof drinks water too. A garden up high.\n",
    "Projects/Script.md": "# Script\n\nIt copies the notes.\n\n"
    "```python\nzanzibar_backup = rsync('--delete')\n```\n",
    "Projects/Ice-out logger.md": "---\nrating: 4\nauthor: Le Guin\n---\n# Ice-out logger\n\n"
    "A buoy that tips over when the lake melts.\n",
    "Travel/Путешествие.md": "# Путешествие\n\nМы купили билеты на поезд до Москвы.\n",
    "Travel/Пища.md": "# Пища\n\nВарили кашу и борщ каждый день.\n",
    "Travel/京都.md": "# 京都の旅\n\n錦市場で食べた抹茶アイスが一番おいしかった。\n",
    "Travel/北京.md": "# 北京\n\n我们在胡同里吃了烤鸭和饺子。\n",
    "Travel/เชียงใหม่.md": "# เชียงใหม่\n\nเราไปตลาดกลางคืนและกินข้าวซอย\n",
    "Travel/Lisbon.md": "# Lisbon\n\nCafé A Brasileira serves the best espresso.\n",
    "Journal/2024-03-10.md": "#mentalhealth\n\nSlept badly, anxious about work.\n",
    "Journal/2024-06-21.md": "#mentalhealth\n\nA calm day at the lake, slept well.\n",
    "Journal/2025-03-05.md": "#work\n\nShipped the importer. Slept little.\n",
    "Journal/2026-03-12.md": "#work\n\nTalked with Priya about the promotion.\n",
    "Journal/2026-04-14.md": "#home\n\nPainted the fence with Jonah.\n",
    "Undated ideas.md": "# Ideas\n\nSlept on it: a podcast about rivers.\n",
    "Long.md": "# Long\n\n"
    + "\n\n".join(f"## Part {n}\n\nThe heron stands in the reeds. {FILLER}" for n in range(12)),
    "Heron.md": "# Birds\n\nSaw a heron by the reeds this morning.\n",
    "Reeds.md": "# Baskets\n\nReeds can be woven. No heron was harmed.\n",
}


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    root = tmp_path_factory.mktemp("rich")
    vault = write_notes(root / "vault", NOTES)
    engine = indexed(root / "home", vault, embedding__provider="builtin")
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("how much do I owe Sreenivas?", "Finance/Debts.md"),
        ("how much money do I still owe my neighbour Sreenivas nowadays?", "Finance/Debts.md"),
        ("Rain garden", "Projects/Rain garden.md"),
        ("furnace", "Home/Boiler.md"),
        ("heating machine", "Home/Boiler.md"),
        ("boiler error codes", "Home/Boiler.md"),
        ("F22", "Home/Boiler.md"),
        ("boilr", "Home/Boiler.md"),
        ("rian gardne", "Projects/Rain garden.md"),
        ("Sreenvas", "Finance/Debts.md"),
        ("zanzibar_backup", "Projects/Script.md"),
        ("rsync delete", "Projects/Script.md"),
        ("Fahrradkette", "Home/Fahrradpflege.md"),
        ("Wie reinige ich die Fahrradkette?", "Home/Fahrradpflege.md"),
        ("билет", "Travel/Путешествие.md"),
        ("каша", "Travel/Пища.md"),
        ("抹茶", "Travel/京都.md"),
        ("京都で一番おいしかった食べ物は何ですか", "Travel/京都.md"),
        ("烤鸭", "Travel/北京.md"),
        ("在北京吃了什么", "Travel/北京.md"),
        ("ตลาด", "Travel/เชียงใหม่.md"),
        ("cafe a brasileira", "Travel/Lisbon.md"),
        ("CAFÉ", "Travel/Lisbon.md"),
        ("ice out logger", "Projects/Ice-out logger.md"),
    ],
)
def test_a_sensible_question_finds_its_note_first(
    rich: Engine, question: str, expected: str
) -> None:
    assert files(rich, question)[:1] == [expected]


@pytest.mark.parametrize("signals", [Signals.WORDS, Signals.HYBRID])
def test_two_words_find_the_tag_that_joins_them(rich: Engine, signals: Signals) -> None:
    found = files(rich, "mental health", signals=signals)
    assert set(found[:2]) == {"Journal/2024-03-10.md", "Journal/2024-06-21.md"}


def test_words_in_code_are_found_by_word_and_shown(rich: Engine) -> None:
    (hit, *_) = hits(rich, "zanzibar_backup", signals=Signals.WORDS)
    assert hit.source_file == "Projects/Script.md"
    assert "zanzibar_backup" in hit.text
    assert "zanzibar_backup" in hit.why.terms


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(directories=("Finance",)), {"Finance/Debts.md", "Finance/Budget.md"}),
        (
            Filters(directories=("Finance", "Home")),
            {
                "Finance/Debts.md",
                "Finance/Budget.md",
                "Home/Boiler.md",
                "Home/Fahrradpflege.md",
                "Home/Reifen.md",
            },
        ),
        (Filters(tags=(("project",),)), {"Projects/Rain garden.md", "Projects/Green roof.md"}),
        (Filters(tags=(("#Project/Garden",),)), {"Projects/Rain garden.md"}),
        (Filters(tags=(("proj",),)), set()),
        (
            Filters(tags=(("project/roof", "work"),)),
            {"Projects/Green roof.md", "Journal/2025-03-05.md", "Journal/2026-03-12.md"},
        ),
        (Filters(tags=(("project",), ("work",))), set()),
        (
            Filters(dates=DateRange("2024-01-01", "2024-12-31")),
            {"Journal/2024-03-10.md", "Journal/2024-06-21.md", "Projects/Rain garden.md"},
        ),
        (
            Filters(dates=DateRange("2026-03-12", None)),
            {"Journal/2026-03-12.md", "Journal/2026-04-14.md"},
        ),
        (Filters(dates=DateRange(None, "2024-03-10")), {"Journal/2024-03-10.md"}),
        (Filters(dates=DateRange("2025-01-01", "2024-01-01")), set()),
        (Filters(properties=(PropertyFilter("rating", "5", "5"),)), {"Projects/Rain garden.md"}),
        (
            Filters(properties=(PropertyFilter("Rating", "4"),)),
            {"Projects/Rain garden.md", "Projects/Ice-out logger.md"},
        ),
        (
            Filters(properties=(PropertyFilter("rating", "3", "5", True, True),)),
            {"Projects/Ice-out logger.md"},
        ),
        (Filters(properties=(PropertyFilter("rating", None, "3.5"),)), {"Projects/Green roof.md"}),
        (
            Filters(properties=(PropertyFilter("status", "open", "open"),)),
            {"Projects/Green roof.md"},
        ),
        (
            Filters(properties=(PropertyFilter("due", "2024-01-01", "2024-12-31"),)),
            {"Projects/Rain garden.md"},
        ),
        (
            Filters(properties=(PropertyFilter("author", "le guin", "le guin"),)),
            {"Projects/Ice-out logger.md"},
        ),
        (Filters(properties=(PropertyFilter("absent", "1", "1"),)), set()),
        (
            Filters(
                properties=(PropertyFilter("rating", "3"), PropertyFilter("status", "done", "done"))
            ),
            {"Projects/Rain garden.md"},
        ),
        (Filters(paths=("rain",)), {"Projects/Rain garden.md"}),
        (Filters(paths=("projects", "roof")), {"Projects/Green roof.md"}),
        (
            Filters(
                directories=("Projects",),
                tags=(("project",),),
                properties=(PropertyFilter("rating", None, "4"),),
                vaults=(("VAULT",),),
            ),
            {"Projects/Green roof.md"},
        ),
        (
            Filters(
                directories=("Journal",), dates=DateRange("2024-01-01", None), tags=(("work",),)
            ),
            {"Journal/2025-03-05.md", "Journal/2026-03-12.md"},
        ),
        (
            Filters(directories=("Journal",), properties=(PropertyFilter("rating", "1"),)),
            set(),
        ),
    ],
)
def test_filters_admit_exactly_what_fits(
    rich: Engine, filters: Filters, expected: set[str]
) -> None:
    # Vectors have something to say about every passage, so the filter alone decides.
    assert set(files(rich, "water slept rent", limit=50, filters=filters)) == expected


def test_a_folder_is_not_the_beginning_of_another(tmp_path: Path) -> None:
    notes = {"Work/a.md": "river", "Workshop/b.md": "river", "work_/c.md": "river"}
    engine = indexed(tmp_path / "home", write_notes(tmp_path / "v", notes))
    assert files(engine, "river", filters=Filters(directories=("Work",))) == ["Work/a.md"]
    engine.close()


def test_a_name_with_a_quote_is_a_filter_like_any_other(tmp_path: Path) -> None:
    notes = {"Jo's/a.md": "river #it's", "Other/b.md": "river"}
    engine = indexed(tmp_path / "home", write_notes(tmp_path / "v", notes))
    assert files(engine, "river", filters=Filters(directories=("Jo's",))) == ["Jo's/a.md"]
    assert files(engine, "river", filters=Filters(paths=("o's/",))) == ["Jo's/a.md"]
    assert files(engine, 'river path:"100%"') == []
    engine.close()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("water tag:project", {"Projects/Rain garden.md", "Projects/Green roof.md"}),
        ("water tag:#project/roof", {"Projects/Green roof.md"}),
        ("water path:rain", {"Projects/Rain garden.md"}),
        ('water path:"rain garden"', {"Projects/Rain garden.md"}),
        (
            "slept after:2024 before:2025 path:journal",
            {"Journal/2024-03-10.md", "Journal/2024-06-21.md"},
        ),
        ("slept before:2024-06", {"Journal/2024-03-10.md", "Projects/Rain garden.md"}),
        ("water prop:rating>=5", {"Projects/Rain garden.md"}),
        ("water prop:rating=3..4", {"Projects/Green roof.md", "Projects/Ice-out logger.md"}),
        ('lake prop:"author=Le Guin"', {"Projects/Ice-out logger.md"}),
        ("water tag:project prop:status=done", {"Projects/Rain garden.md"}),
        ("water tag:project after:2025", {"Projects/Green roof.md"}),
    ],
)
def test_filters_may_be_written_into_the_question(
    rich: Engine, question: str, expected: set[str]
) -> None:
    assert set(files(rich, question, limit=50)) == expected


def test_a_question_that_is_only_a_filter_is_answered(rich: Engine) -> None:
    assert set(files(rich, "tag:project")) == {
        "Projects/Rain garden.md",
        "Projects/Green roof.md",
    }


def test_filters_of_the_call_and_of_the_question_all_hold(rich: Engine) -> None:
    filters = Filters(dates=DateRange("2024-05-01", None))
    found = files(rich, "slept before:2025", filters=filters)
    assert found == ["Journal/2024-06-21.md", "Projects/Rain garden.md"]


@pytest.mark.parametrize("tag", ["#", "/", "##", " "])
def test_a_tag_without_a_name_is_refused_or_admits_nothing(rich: Engine, tag: str) -> None:
    try:
        found = files(rich, "water", filters=Filters(tags=((tag,),)))
    except ObsidianRagError as error:
        assert error.code == "INVALID_ARGUMENT"
    else:
        assert found == []


def test_an_unknown_vault_is_refused_without_naming_the_known_ones(rich: Engine) -> None:
    with pytest.raises(InvalidArgument) as caught:
        asked(rich, "water", filters=Filters(vaults=(("elsewhere",),)))
    assert caught.value.code == "INVALID_ARGUMENT"
    assert str(rich.config.vault_root) not in caught.value.message


@pytest.mark.parametrize("signals", list(Signals))
def test_an_excluded_word_occurs_in_no_hit(rich: Engine, signals: Signals) -> None:
    found = files(rich, "water garden -sedge", limit=50, signals=signals)
    assert "Projects/Rain garden.md" not in found
    assert "Projects/Green roof.md" in found


def test_an_excluded_word_is_a_whole_word(rich: Engine) -> None:
    assert "Projects/Rain garden.md" in files(rich, "water -gard", limit=50)
    assert "Projects/Rain garden.md" not in files(rich, "water -GARDEN", limit=50)


def test_an_excluded_phrase_occurs_in_no_hit(rich: Engine) -> None:
    found = files(rich, 'plants water -"blue flag"', limit=50)
    assert "Projects/Rain garden.md" not in found
    assert "Projects/Green roof.md" in found
    assert "Projects/Rain garden.md" in files(rich, 'plants water -"flag blue"', limit=50)


def test_exclusion_holds_when_words_are_misspelt(rich: Engine) -> None:
    """The second look, for words that no candidate has, brings nothing back."""
    found = files(rich, "Sreenvas watre -sedge -sreenivas", limit=50)
    assert "Projects/Rain garden.md" not in found
    assert "Finance/Debts.md" not in found


@pytest.mark.parametrize("signals", list(Signals))
def test_a_phrase_stands_in_every_hit(rich: Engine, signals: Signals) -> None:
    assert files(rich, '"drink water"', limit=50, signals=signals) == ["Projects/Rain garden.md"]
    assert files(rich, '"water drink"', limit=50, signals=signals) == []


def test_a_phrase_may_stand_in_a_title(rich: Engine) -> None:
    assert files(rich, '"Rain Garden"', limit=50) == ["Projects/Rain garden.md"]


def test_a_phrase_knows_no_case_and_no_accents(rich: Engine) -> None:
    assert files(rich, '"cafe a brasileira"', limit=50) == ["Travel/Lisbon.md"]


def test_a_date_in_the_question_narrows_the_answer_and_is_reported(rich: Engine) -> None:
    answer = asked(rich, "when was I anxious in 2024?", limit=50).answer
    assert answer.suggestion is not None
    assert (answer.suggestion.phrase, answer.suggestion.is_applied) == ("in 2024", True)
    assert (answer.suggestion.first, answer.suggestion.last) == ("2024-01-01", "2024-12-31")
    assert answer.hits[0].source_file == "Journal/2024-03-10.md"
    assert {hit.date and hit.date[:4] for hit in answer.hits} <= {"2024", None}


def test_last_march_is_counted_from_today(rich: Engine) -> None:
    answer = asked(rich, "what happened at work last March?").answer
    assert answer.hits[0].source_file == "Journal/2026-03-12.md"


def test_a_suggested_date_can_be_switched_off(rich: Engine) -> None:
    answer = asked(rich, "slept in 2024", limit=50, use_dates=False).answer
    assert answer.suggestion is None
    assert "Journal/2025-03-05.md" in {hit.source_file for hit in answer.hits}


def test_a_suggested_date_gives_way_to_one_that_was_asked_for(rich: Engine) -> None:
    filters = Filters(dates=DateRange("2025-01-01", "2025-12-31"))
    answer = asked(rich, "slept in 2024", filters=filters).answer
    assert answer.suggestion is None
    assert [hit.source_file for hit in answer.hits] == [
        "Journal/2025-03-05.md",
        "Projects/Green roof.md",
    ]


def test_a_suggested_date_is_dropped_when_nothing_fits(rich: Engine) -> None:
    answer = asked(rich, "how much did I owe Sreenivas in 1999?").answer
    assert answer.suggestion is not None
    assert (answer.suggestion.phrase, answer.suggestion.is_applied) == ("in 1999", False)
    assert answer.hits[0].source_file == "Finance/Debts.md"


def test_undated_notes_remain_when_a_date_is_suggested(rich: Engine) -> None:
    assert "Undated ideas.md" in files(rich, "slept podcast in 2024", limit=50)


@pytest.mark.parametrize(
    ("signals", "shares"),
    [
        (Signals.WORDS, {"text", "heading", "code", "title", "letters"}),
        (Signals.VECTORS, {"static"}),
        (Signals.HYBRID, {"text", "heading", "code", "title", "letters", "static"}),
    ],
)
def test_each_hit_says_what_each_signal_gave(
    rich: Engine, signals: Signals, shares: set[str]
) -> None:
    found = hits(rich, "plants that drink water", signals=signals)
    assert found[0].source_file == "Projects/Rain garden.md"
    for hit in found:
        assert {name for name, share in hit.why.signals.items() if share} <= shares
        assert sum(hit.why.signals.values()) == pytest.approx(hit.score, abs=0.001)


def test_words_alone_return_only_notes_with_some_word(rich: Engine) -> None:
    assert files(rich, "espresso", signals=Signals.WORDS) == ["Travel/Lisbon.md"]


def test_vectors_find_what_has_no_word_in_common(rich: Engine) -> None:
    assert "Finance/Budget.md" in files(rich, "money", signals=Signals.VECTORS)[:3]


def test_one_long_note_leaves_room_for_others(rich: Engine) -> None:
    found = [hit.source_file for hit in hits(rich, "heron reeds", limit=5)]
    assert {"Heron.md", "Reeds.md"} <= set(found)
    assert found.count("Long.md") <= 2


def test_grouping_shows_each_note_once(rich: Engine) -> None:
    found = [hit.source_file for hit in hits(rich, "heron reeds", limit=50, group_by_note=True)]
    assert len(found) == len(set(found))
    assert {"Long.md", "Heron.md", "Reeds.md"} <= set(found)


@pytest.mark.parametrize("question", ["?!", "the", "...", "🦆", "-sedge", '""', "a"])
def test_a_question_without_keywords_is_no_failure(rich: Engine, question: str) -> None:
    asked(rich, question)


@pytest.mark.parametrize(
    "question", ["*", "a AND b OR", "x~2", "(((", "title:^5", "a\\", "'; DROP TABLE x; --", "%_"]
)
def test_query_syntax_of_other_tools_is_only_text(rich: Engine, question: str) -> None:
    asked(rich, question)
    asked(rich, f'"{question}"')


def test_an_edit_is_found_by_an_engine_that_was_already_open(tmp_path: Path) -> None:
    vault = write_notes(tmp_path / "v", {"a.md": "heron", "b.md": "otter"})
    writer = indexed(tmp_path / "home", vault)
    reader = open_engine(tmp_path / "home", vault)
    words = Signals.WORDS
    assert files(reader, "badger", signals=words) == []
    (vault / "c.md").write_text("badger")
    (vault / "a.md").unlink()
    run_index(writer, Mode.SYNC)
    assert files(reader, "badger", signals=words) == ["c.md"]
    assert files(reader, "heron", signals=words) == []
    reader.close()
    writer.close()


def test_an_open_engine_answers_after_another_one_built_a_new_index(tmp_path: Path) -> None:
    vault = write_notes(tmp_path / "v", {"a.md": "heron", "b.md": "otter"})
    writer = indexed(tmp_path / "home", vault)
    reader = open_engine(tmp_path / "home", vault)
    for round_ in range(2):
        assert files(reader, "heron") and asked(reader, "heron").trouble is None
        (vault / f"new{round_}.md").write_text(f"heron newcomer{round_}")
        run_index(writer, Mode.REINDEX)
        assert files(reader, f"newcomer{round_}")[:1] == [f"new{round_}.md"]
    reader.close()
    writer.close()


def test_a_note_moved_to_another_folder_answers_only_there(tmp_path: Path) -> None:
    vault = write_notes(tmp_path / "v", {"A/note.md": "heron", "A/rest.md": "x", "B/other.md": "x"})
    engine = indexed(tmp_path / "home", vault)
    shutil.move(vault / "A/note.md", vault / "B/note.md")
    run_index(engine, Mode.SYNC)
    words = Signals.WORDS
    assert files(engine, "heron", signals=words, filters=Filters(directories=("A",))) == []
    assert files(engine, "heron", signals=words, filters=Filters(directories=("B",))) == [
        "B/note.md"
    ]
    engine.close()


def test_a_note_is_found_although_hundreds_of_better_ones_are_excluded(tmp_path: Path) -> None:
    notes = {f"tap{number}.md": f"water tap {number}" for number in range(400)}
    notes["spring.md"] = "water comes from a spring. " + FILLER
    engine = indexed(tmp_path / "home", write_notes(tmp_path / "v", notes))
    assert files(engine, "water -tap", signals=Signals.WORDS) == ["spring.md"]
    engine.close()
