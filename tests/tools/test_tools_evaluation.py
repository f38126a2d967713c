"""Golden files, questions made from a vault, and what an evaluation reports."""

import json
from datetime import date
from pathlib import Path

import pytest
from tests.fixture_types import MakeEngine, MakeVault

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.errors import IndexNotFound, InvalidArgument, NotFound
from obsidian_rag.index import Mode
from obsidian_rag.search import (
    EvalOptions,
    Half,
    Outcome,
    Question,
    Signals,
    half_of,
)
from obsidian_rag.search.evaluation import Measures, measure, report_of
from obsidian_rag.tools.evaluation import evaluate, load_golden, own_questions

PERFECT = Measures(1, 1, 1, 1, 1, 1, 1)
NOTES = {
    "Home/Boiler.md": "---\naliases: [heating]\n---\n# Gas boiler\n\nPress reset for a while.",
    "Home/Roof.md": (
        "# Roof\n\nA tile came loose. The plumber showed me how to restart the"
        " [[Boiler|old boiler]] after a power cut. Rain again.\n\nSee [[Boiler]].\n\n![[Boiler]]\n"
    ),
    "Garden/Rain barrel.md": "# Rain barrel\n\nHolds two hundred litres of water.",
}


@pytest.fixture
def indexed(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    made = engine(make_vault(NOTES))
    run_index(made, Mode.FULL)
    return made


def golden(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "golden.json"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_golden_file_is_a_list_or_lines(indexed: Engine, tmp_path: Path) -> None:
    entries = [
        {"query": "heating broken", "relevant": ["Home/Boiler.md"], "category": "home"},
        {"query": "water", "relevant": {"Garden/Rain barrel.md": 2, "Home/Roof.md": 0.5}},
    ]
    as_list = load_golden(indexed, golden(tmp_path, json.dumps(entries)))
    lines = "\n\n".join(json.dumps(entry) for entry in entries)
    as_lines = load_golden(indexed, golden(tmp_path, f"\ufeff{lines}\n"))
    assert as_list == as_lines
    assert as_list.unknown == ()
    assert as_list.questions == (
        Question("heating broken", {"Home/Boiler.md": 1.0}, "home"),
        Question("water", {"Garden/Rain barrel.md": 2.0, "Home/Roof.md": 0.5}, "questions"),
    )


def test_notes_that_are_not_in_the_index_are_reported_and_count_as_not_found(
    indexed: Engine, tmp_path: Path
) -> None:
    file = golden(tmp_path, '[{"query": "reset", "relevant": ["Home/Boiler.md", "Gone.md"]}]')
    loaded = load_golden(indexed, file)
    assert loaded.unknown == ("Gone.md",)
    words = evaluate(indexed, loaded.questions).overall.by_signals[Signals.WORDS]
    assert (words.hit_at_1, words.recall_at_10) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "the file"),
        ("[]", "the file"),
        ("[{]", "the file"),
        ('{"query": "a", "relevant": ["b.md"]}\nnonsense', "line 2"),
        ('[{"query": "a", "relevant": ["b.md"]}, 5]', "entry 2"),
        ('[{"relevant": ["b.md"]}]', "entry 1"),
        ('[{"query": " ", "relevant": ["b.md"]}]', "entry 1"),
        ('[{"query": "a"}]', "entry 1"),
        ('[{"query": "a", "relevant": []}]', "entry 1"),
        ('[{"query": "a", "relevant": "b.md"}]', "entry 1"),
        ('[{"query": "a", "relevant": [1]}]', "entry 1"),
        ('[{"query": "a", "relevant": {"b.md": "high"}}]', "entry 1"),
        ('[{"query": "a", "relevant": {"b.md": true}}]', "entry 1"),
        ('[{"query": "a", "relevant": {"b.md": -1}}]', "entry 1"),
        ('[{"query": "a", "relevant": {"b.md": NaN}}]', "entry 1"),
        ('[{"query": "a", "relevant": {"b.md": 0}}]', "entry 1"),
        ('[{"query": "a", "relevant": ["b.md"], "category": 5}]', "entry 1"),
        ('[{"query": "a", "relevant": ["b.md"], "category": "none"}]', "entry 1"),
        ('[{"query": "a", "relevant": ["b.md"], "answer": "(unclosed"}]', "entry 1"),
        ('[{"query": "a", "relevant": ["b.md"], "answer": 5}]', "entry 1"),
        ('[{"query": "a", "relevant": ["b.md"], "today": "yesterday"}]', "entry 1"),
    ],
)
def test_a_malformed_golden_file_is_refused_and_the_entry_named(
    indexed: Engine, tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        load_golden(indexed, golden(tmp_path, text))
    assert named in refused.value.message


def test_a_question_may_have_an_answer_a_day_or_nothing_that_answers_it(
    indexed: Engine, tmp_path: Path
) -> None:
    entries = [
        {
            "query": "what broke last week?",
            "relevant": ["Home/Boiler.md"],
            "answer": "res+et",
            "today": "2025-03-04",
        },
        {"query": "a parrot", "relevant": {}, "category": "none", "answer": None},
    ]
    loaded = load_golden(indexed, golden(tmp_path, json.dumps(entries))).questions
    assert (loaded[0].answer, loaded[0].today) == ("res+et", date(2025, 3, 4))
    assert loaded[0].is_answerable
    assert loaded[1] == Question("a parrot", {}, "none")
    assert not loaded[1].is_answerable


def test_halves_go_by_position_and_leave_nothing_out() -> None:
    questions = [Question(str(n), {"a.md": 1.0}, "x") for n in range(5)]
    even, odd = half_of(questions, Half.EVEN), half_of(questions, Half.ODD)
    assert [(one.query, one.position) for one in even] == [("0", 0), ("2", 2), ("4", 4)]
    assert [(one.query, one.position) for one in odd] == [("1", 1), ("3", 3)]
    assert half_of(questions, Half.ALL) == questions


def test_a_golden_file_that_is_no_text_or_not_there_is_refused(
    indexed: Engine, tmp_path: Path
) -> None:
    (tmp_path / "golden.json").write_bytes(b"\xff\xfe[")
    with pytest.raises(InvalidArgument):
        load_golden(indexed, tmp_path / "golden.json")
    with pytest.raises(NotFound):
        load_golden(indexed, tmp_path / "absent.json")


def test_without_an_index_there_is_nothing_to_evaluate(
    engine: MakeEngine, make_vault: MakeVault, tmp_path: Path
) -> None:
    made = engine(make_vault(NOTES))
    with pytest.raises(IndexNotFound):
        own_questions(made, 10)
    with pytest.raises(IndexNotFound):
        load_golden(made, golden(tmp_path, '[{"query": "a", "relevant": ["b.md"]}]'))


def test_a_vault_asks_for_its_notes_by_title_alias_and_the_sentences_around_links(
    indexed: Engine,
) -> None:
    made = {question.query: question for question in own_questions(indexed, 10)}
    assert made == {
        "Gas boiler": Question("Gas boiler", {"Home/Boiler.md": 1.0}, "title"),
        "Rain barrel": Question("Rain barrel", {"Garden/Rain barrel.md": 1.0}, "title"),
        "heating": Question("heating", {"Home/Boiler.md": 1.0}, "alias"),
        "The plumber showed me how to restart the after a power cut.": Question(
            "The plumber showed me how to restart the after a power cut.",
            {"Home/Boiler.md": 1.0},
            "link",
            excluded="Home/Roof.md",
        ),
    }


@pytest.mark.parametrize(
    "sentence",
    [
        "We always fill the [[Rain barrel]] before the frost comes back.",
        "We always fill the [barrel](../Garden/Rain%20barrel.md) before the frost comes back.",
        "We always fill the [[Garden/Rain barrel#Care|big one]] before the frost comes back.",
        "No. We always fill the rain barrel, [[rain barrel]], before the frost comes back. [[A]]",
        '> - **We always** fill the "[[Rain barrel]]" before [the frost](http://a.b/c) comes back.',
    ],
)
def test_the_linked_note_is_never_named_in_the_question(
    engine: MakeEngine, make_vault: MakeVault, sentence: str
) -> None:
    barrel = {"Garden/Rain barrel.md": NOTES["Garden/Rain barrel.md"]}
    made = engine(make_vault({**barrel, "Home/Winter.md": f"# Winter\n\n{sentence}\n"}))
    run_index(made, Mode.FULL)
    (question,) = (one for one in own_questions(made, 10) if one.category == "link")
    words = question.query.replace(",", "").split()
    assert words == ["We", "always", "fill", "the", "before", "the", "frost", "comes", "back."]
    assert question.relevant == {"Garden/Rain barrel.md": 1.0}
    assert question.excluded == "Home/Winter.md"


@pytest.mark.parametrize(
    "sentence",
    [
        "This one is about a [[Missing note]] that nobody has written yet.",
        "This one is about [[Roof]] itself, and says quite a lot about it.",
        "Two at once, the [[Boiler]] and the [[Rain barrel]], are hard to tell apart.",
        "Too short: [[Boiler]].",
        "`We always check the [[Boiler]] before the frost comes back`",
    ],
)
def test_sentences_without_one_clear_answer_make_no_question(
    engine: MakeEngine, make_vault: MakeVault, sentence: str
) -> None:
    made = engine(make_vault({**NOTES, "Home/Roof.md": f"# Roof\n\n{sentence}\n"}))
    run_index(made, Mode.FULL)
    assert [one for one in own_questions(made, 10) if one.category == "link"] == []


LINKS = (
    ("[[Boiler|what keeps us warm]]", True),
    ("[what keeps us warm](Home/Boiler.md)", True),
    ("[[Boiler|the old gas heater]]", False),  # a word of the title
    ("[[Boiler|our pressure troubles]]", False),  # a word of a heading
    ("[[Boiler|warm]]", False),  # too little
    ("[[Boiler]]", False),
    ("[[Boiler|what keeps us warm]] [[Pump|what keeps us warm]]", False),  # which one?
    ("[[Missing|what keeps us warm]]", False),
)


@pytest.mark.parametrize(("link", "is_question"), LINKS)
def test_a_link_in_words_that_its_note_has_not_in_its_names_is_a_reworded_question(
    engine: MakeEngine, make_vault: MakeVault, link: str, is_question: bool
) -> None:
    notes = {
        "Home/Boiler.md": "# Gas boiler\n\n## Pressure\n\nTwo bar.",
        "Pump.md": "# Pump\n\nHums.",
        "Index.md": f"# Start here\n\n- {link}\n",
    }
    made = engine(make_vault(notes))
    run_index(made, Mode.FULL)
    found = [one for one in own_questions(made, 10) if one.category == "reworded"]
    expected = Question(
        "what keeps us warm", {"Home/Boiler.md": 1.0}, "reworded", excluded="Index.md"
    )
    assert found == ([expected] if is_question else [])


def test_notes_of_the_same_title_are_all_right_answers(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "# Weekly review\n\none", "b.md": "# Weekly Review\n\ntwo"}))
    run_index(made, Mode.FULL)
    (question,) = own_questions(made, 10)
    assert question.relevant == {"a.md": 1.0, "b.md": 1.0}


def test_a_sample_is_limited_per_kind_and_the_same_every_time(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    notes = {
        f"{n}.md": f"---\naliases: [alias{n}]\n---\n# Title {'x' * n}\n\nbody" for n in range(9)
    }
    made = engine(make_vault(notes))
    run_index(made, Mode.FULL)
    sample = own_questions(made, 3)
    assert sorted(question.category for question in sample) == ["alias"] * 3 + ["title"] * 3
    assert own_questions(made, 3) == sample
    assert own_questions(made, 3, seed=1) != sample


def test_every_question_is_asked_by_words_by_vectors_and_by_both(indexed: Engine) -> None:
    questions = [
        Question("Rain barrel", {"Garden/Rain barrel.md": 1.0}, "easy"),
        Question("Gas boiler", {"Home/Boiler.md": 1.0}, "easy"),
        Question("reset", {"Nowhere.md": 1.0}, "impossible"),
    ]
    steps: list[tuple[int, int]] = []
    report = evaluate(indexed, questions, on_progress=lambda *step: steps.append(step))
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert report.trouble is None
    easy, impossible = report.categories
    assert (easy.category, easy.questions) == ("easy", 2)
    assert list(easy.by_signals) == [Signals.WORDS, Signals.VECTORS, Signals.HYBRID]
    assert easy.by_signals[Signals.WORDS] == easy.by_signals[Signals.HYBRID] == PERFECT
    assert impossible.by_signals[Signals.WORDS] == Measures(0, 0, 0, 0, 0, 0, 0)
    assert report.overall.questions == 3
    assert report.overall.by_signals[Signals.HYBRID].hit_at_1 == pytest.approx(2 / 3)


def test_the_note_that_gives_the_answer_away_does_not_count(indexed: Engine) -> None:
    query = "The plumber showed me how to restart after a power cut"
    question = Question(query, {"Home/Boiler.md": 1.0}, "link")
    excluding = Question(query, {"Home/Boiler.md": 1.0}, "link", excluded="Home/Roof.md")
    with_it = evaluate(indexed, [question]).overall.by_signals[Signals.HYBRID]
    without = evaluate(indexed, [excluding]).overall.by_signals[Signals.HYBRID]
    assert with_it.hit_at_1 == 0
    assert without.mrr > with_it.mrr


def test_signals_that_need_missing_vectors_are_left_out_and_the_trouble_told(
    indexed: Engine, engine: MakeEngine
) -> None:
    changed = engine(indexed.config.vault_root, {"embedding.dimensions": 64})
    report = evaluate(changed, own_questions(changed, 10))
    assert report.trouble is not None
    assert report.trouble.code == "EMBEDDING_MISMATCH"
    assert list(report.overall.by_signals) == [Signals.WORDS]


def test_the_day_of_a_question_decides_what_last_year_means(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    notes = {
        "Journal/2022-05-01.md": "# Trip\n\nWe went to the lake.",
        "Journal/2024-05-01.md": "# Trip\n\nWe went to the lake again.",
    }
    made = engine(make_vault(notes))
    run_index(made, Mode.FULL)
    found = [
        evaluate(
            made,
            [
                Question(
                    "trip to the lake in may last year",
                    {"Journal/2022-05-01.md": 1.0},
                    "date",
                    today=date(year, 7, 1),
                )
            ],
            EvalOptions(ways=(Signals.WORDS,)),
        ).overall.by_signals[Signals.WORDS]
        for year in (2023, 2025)
    ]
    assert [one.hit_at_1 for one in found] == [1.0, 0.0]


def test_the_answer_counts_where_a_passage_shown_has_it(indexed: Engine) -> None:
    right = {"Home/Boiler.md": 1.0}
    questions = [
        Question("gas boiler", right, "home", answer="press RESET"),
        Question("gas boiler", right, "home", answer="^for a while"),
        Question("gas boiler", right, "home"),
    ]
    report = evaluate(indexed, questions, EvalOptions(ways=(Signals.WORDS,)))
    assert list(report.overall.by_signals) == [Signals.WORDS]
    seen = report.overall.answers[Signals.WORDS]
    assert (seen.questions, seen.answer_at_1, seen.answer_at_3) == (2, 0.5, 0.5)
    assert [one.answered_at for one in report.main] == [1, None, None]


def outcome(query: str, rank: int, confidence: float, *, is_weak: bool) -> Outcome:
    """What a question comes to whose right note is at this rank; at 0 nothing answers it."""
    question = Question(query, {"a.md": 1.0} if rank else {}, "some" if rank else "none")
    ranking = [*(f"{n}.md" for n in range(rank - 1)), "a.md"]
    measures = measure(ranking, question.relevant)
    used = frozenset({"text", "meaning"})
    return Outcome(question, 0, measures, rank or None, None, is_weak, confidence, used, None)


def test_weak_flags_are_counted_and_a_threshold_is_proposed() -> None:
    outcomes = (
        *(outcome("good", 1, 0.5 + n / 100, is_weak=False) for n in range(18)),
        outcome("doubted", 2, 0.3, is_weak=True),
        outcome("doubted and lost", 9, 0.1, is_weak=True),
        outcome("caught", 0, 0.05, is_weak=True),
        outcome("caught", 0, 0.2, is_weak=True),
        outcome("believed", 0, 0.9, is_weak=False),
    )
    report = report_of({Signals.HYBRID: outcomes})
    found = report.weakness
    assert (found.answerable, found.answerable_weak, found.found_weak) == (20, 2, 1)
    assert (found.unanswerable, found.unanswerable_weak) == (3, 2)
    assert (found.threshold, found.would_be_wrong) == (0.3, 0.05)
    assert found.would_be_caught == pytest.approx(2 / 3)
    assert [one.category for one in report.categories] == ["some"]
    assert report.overall.questions == 20
    assert report.with_meaning == 23
    listed = [one.question.query for one in report.worst(10)]
    assert listed == ["doubted and lost", "believed", "doubted"]
    assert [one.question.query for one in report.worst(1)] == ["doubted and lost"]
