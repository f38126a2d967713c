"""Answers with meaning vectors, times, slips and doubt: real files, LanceDB and vector files."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.search.indexed import TODAY, asked, files, indexed, write_notes

from obsidian_rag.engine import Engine
from obsidian_rag.search import Filters, Meanings, Request, Searcher, Signals
from obsidian_rag.search.letters import edits, has_unknown_name, nearest_word
from obsidian_rag.store import Links, MeaningStore

NOTES = {
    "Boiler.md": "# Boiler\n\nIt rumbles at night, and the pressure is low.\n",
    "Orchard.md": "---\ntags: [plants]\n---\n# Orchard\n\nApples and pears, pruned in winter.\n",
    "Network.md": "# Network\n\nThe wireguard server forwards packets.\n",
    "Journal/2025-03-04.md": "Soup with Ines, then the cinema.\n",
    "Journal/2025-03-20.md": "A long walk by the lake.\n",
    "Journal/2025-07-01.md": "The lake again.\n",
    "Year 2025.md": "# Plans\n\nMore walks.\n",
    "Tasks.md": "# Tasks\n\n- [ ] Repair the walking boots, 2025-03-21\n",
    "Walks.md": "# Walks\n\nWalks by the lake are long.\n",
}
WIDTH = 8


def axis(number: int, other: int | None = None) -> NDArray[np.float32]:
    vector = np.zeros(WIDTH, dtype=np.float32)
    vector[number] = 1
    if other is not None:
        vector[other] = 0.3
    return vector / np.float32(np.linalg.norm(vector))


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    root = tmp_path_factory.mktemp("meaning")
    engine = indexed(root / "home", write_notes(root / "vault", NOTES))
    yield engine
    engine.close()


def chunk_ids(engine: Engine, path: str) -> list[str]:
    (link,) = Links(engine.database).all()
    return [chunk.chunk_id for chunk in engine.chunks.fetch(link.link_id, [path])[path]]


def searcher(engine: Engine, folder: Path, near: dict[str, int]) -> Searcher:
    """One whose questions are all along the first axis, with notes along the given ones."""
    store = MeaningStore(folder, "axes")
    for path, number in near.items():
        ids = chunk_ids(engine, path)
        vectors = np.stack([axis(number, 0)] * len(ids)) if number else np.stack([axis(0)])
        store.put([(chunk_id, bytes(8)) for chunk_id in ids], vectors)
    meanings = Meanings(lambda _: axis(0), store)
    return Searcher(
        engine.chunks, engine.database, engine.parts.embedding.query_vector, "hash", meanings
    )


def found(searching: Searcher, question: str, **options: object) -> list[str]:
    request = Request(question, 5, today=TODAY, **options)  # type: ignore[arg-type]
    return [hit.source_file for hit in searching.search(request).hits]


def test_what_no_word_finds_is_found_by_its_meaning(vault: Engine, tmp_path: Path) -> None:
    near = {"Orchard.md": 0, "Boiler.md": 1, "Network.md": 2}
    searching = searcher(vault, tmp_path, near)
    assert found(searching, "fruit trees")[0] == "Orchard.md"
    assert found(searching, "fruit trees", signals=Signals.VECTORS)[0] == "Orchard.md"


def test_words_that_say_it_all_are_not_overruled(vault: Engine, tmp_path: Path) -> None:
    searching = searcher(vault, tmp_path, {"Orchard.md": 1, "Boiler.md": 2, "Network.md": 0})
    assert found(searching, "orchard apples pears")[0] == "Orchard.md"


def test_a_filter_holds_for_what_is_found_by_meaning(vault: Engine, tmp_path: Path) -> None:
    searching = searcher(vault, tmp_path, {"Boiler.md": 0, "Orchard.md": 1})
    answer = found(searching, "fruit trees", filters=Filters(tags=(("plants",),)))
    assert answer == ["Orchard.md"]


def test_of_equal_passages_that_of_the_note_about_it_comes_first(tmp_path: Path) -> None:
    filling = "Much is to be said here, and none of it answers anything. " * 20
    text = f"# One\n\n{filling}\n\n# Two\n\n{filling}\n\n# Three\n\n{filling}\n"
    root = write_notes(tmp_path / "vault", {"aside.md": text, "subject.md": text})
    with closing(indexed(tmp_path / "home", root)) as engine:
        store = MeaningStore(tmp_path / "vectors", "axes")
        for path, others in (("aside.md", axis(1)), ("subject.md", axis(1, 0))):
            ids = chunk_ids(engine, path)
            vectors = np.stack([axis(0), *[others] * (len(ids) - 1)])
            assert len(ids) > 2
            store.put([(chunk_id, bytes(8)) for chunk_id in ids], vectors)
        meanings = Meanings(lambda _: axis(0), store)
        searching = Searcher(engine.chunks, engine.database, None, "hash", meanings)
        assert found(searching, "fruit trees")[0] == "subject.md"
        # Sections that are judged each by itself say nothing of each other.
        assert found(searching, "fruit trees", by_section=True)[0] == "aside.md"


def test_a_question_in_another_script_is_not_asked_of_an_english_model(
    vault: Engine, tmp_path: Path
) -> None:
    searching = searcher(vault, tmp_path, {"Boiler.md": 0})
    request = Request("фруктовые деревья", 5, today=TODAY)
    hits = searching.search(request).hits
    assert all("meaning" not in hit.why.signals for hit in hits)


def test_what_is_of_the_time_comes_first_then_what_speaks_of_it_then_the_undated(
    vault: Engine,
) -> None:
    answer = asked(vault, "walks by the lake in March 2025").answer
    paths = list(dict.fromkeys(hit.source_file for hit in answer.hits))
    assert paths[0] == "Journal/2025-03-20.md"
    of_time, speaking, undated = map(paths.index, ("Journal/2025-03-04.md", "Tasks.md", "Walks.md"))
    assert of_time < speaking < undated
    assert "Journal/2025-07-01.md" not in paths
    assert answer.suggestion is not None
    assert answer.suggestion.is_applied
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)


def test_a_question_that_is_only_a_time_lists_what_is_of_it(vault: Engine) -> None:
    answer = asked(vault, "what did I do last March?", limit=2).answer
    # Today is in April 2026, and nothing is from March 2026.
    assert answer.suggestion is not None
    assert not answer.suggestion.is_applied
    assert set(files(vault, "what did I do in March 2025?", limit=2)) == {
        "Journal/2025-03-04.md",
        "Journal/2025-03-20.md",
    }


def test_a_note_of_a_year_is_not_of_a_day_in_it(vault: Engine) -> None:
    assert files(vault, "walks on 2025-03-20")[0] == "Journal/2025-03-20.md"
    assert "Year 2025.md" not in files(vault, "walks on 2025-03-20")[:2]


def test_a_slip_is_put_right_and_told(vault: Engine) -> None:
    answer = asked(vault, "wiregaurd server").answer
    assert answer.hits[0].source_file == "Network.md"
    assert answer.corrected == "wireguard server"
    assert asked(vault, "wireguard server").answer.corrected is None


@pytest.mark.parametrize("question", ["***", "(((", "🎉", "— … —"])
def test_symbols_alone_are_called_weak(vault: Engine, question: str) -> None:
    assert asked(vault, question).answer.is_weak


def test_nonsense_is_called_weak_and_a_plain_question_is_not(vault: Engine) -> None:
    assert asked(vault, "qzxwv jkvbq").answer.is_weak
    plain = asked(vault, "where do the wireguard packets go").answer
    assert not plain.is_weak
    assert plain.hits[0].score == pytest.approx(plain.confidence, abs=0.001)


@pytest.mark.parametrize(
    ("word", "others", "expected"),
    [
        ("wiregaurd", ["wireguard", "garden"], "wireguard"),
        ("substition", ["substitution", "position"], "substitution"),
        ("comit", ["commit", "comic"], "commit"),
        ("grind", ["grid"], None),
        ("espresso", ["express"], None),
        ("билет", ["билеты"], "билеты"),
        ("zigbee", ["pigeon"], None),
    ],
)
def test_the_nearest_word_is_a_form_of_it_or_a_likely_slip(
    word: str, others: list[str], expected: str | None
) -> None:
    assert nearest_word(word, others) == expected


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("abc", "abcd", 1), ("abc", "xyz", 3)],
)
def test_edits_are_counted_with_swaps_as_one(one: str, other: str, far: int) -> None:
    assert edits(one, other, 5) == far


@pytest.mark.parametrize(
    ("question", "is_unknown"),
    [
        ("how do I pair a Zigbee bulb", True),
        ("log in with a YubiKey", True),
        ("cannot import name soft_unicode", True),
        ("Zigbee bulb for the hall", False),
        ("the zigbee bulb", False),
        ("Wann kommt die Ameisensäure", False),
    ],
)
def test_a_name_that_no_note_has_is_noticed(question: str, is_unknown: bool) -> None:
    having = dict.fromkeys(("zigbee", "yubikey", "soft_unicode", "ameisensaure"), 0)
    assert has_unknown_name(question, having) is is_unknown
