"""Meaning vectors: found again, never doubled, and no damage that makes a reader fail."""

import os
import stat
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from obsidian_rag.errors import Busy, ReadOnly
from obsidian_rag.store import MeaningStore, pack_ids, text_digest

WIDTH = 384
RECORD = 36 + 384
HEADER = 64

Vectors = NDArray[np.float32]


def unit_vectors(count: int, seed: int = 0, width: int = WIDTH) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def rows(count: int, seed: int = 0) -> list[tuple[str, bytes]]:
    numbers = np.random.default_rng(seed)
    return [(str(uuid.UUID(bytes=numbers.bytes(16))), numbers.bytes(8)) for _ in range(count)]


def filled(home: Path, count: int = 40) -> tuple[MeaningStore, list[tuple[str, bytes]], Vectors]:
    store = MeaningStore(home / "meaning", "onnx:tiny")
    named, vectors = rows(count), unit_vectors(count)
    store.put(named, vectors)
    return store, named, vectors


def test_what_is_put_is_found_by_cosine_best_first(home: Path) -> None:
    store, named, vectors = filled(home)
    question = vectors[7] + 0.5 * vectors[3]
    found = store.nearest(question, 5)
    cosines = vectors @ (question / np.linalg.norm(question))
    best = np.argsort(-cosines)[:5]
    assert list(found) == [named[place][0] for place in best]
    assert list(found.values()) == pytest.approx(list(cosines[best]), abs=0.01)
    assert store.count() == 40
    assert MeaningStore(home / "meaning", "onnx:tiny").nearest(question, 5) == found


def test_many_vectors_are_compared_like_few(home: Path) -> None:
    store, named, vectors = MeaningStore(home / "meaning", "onnx:tiny"), rows(33_001), []
    for start in range(0, len(named), 10_000):
        vectors.append(unit_vectors(len(named[start : start + 10_000]), start, width=8))
        store.put(named[start : start + 10_000], vectors[-1])
    whole = np.concatenate(vectors)
    for place in (0, 16_499, 16_500, 33_000):  # at both ends of either half
        found = store.nearest(whole[place], 20)
        assert found[named[place][0]] == pytest.approx(1.0, abs=0.01)
        assert min(found.values()) > np.sort(whole @ whole[place])[-20] - 0.03


def test_nearest_among_some_chunks_knows_no_others(home: Path) -> None:
    store, named, vectors = filled(home)
    some = [named[3][0], named[9][0], str(uuid.uuid4()), "no id at all"]
    assert list(store.nearest(vectors[3], 10, among=some)) == [named[3][0], named[9][0]]
    assert store.nearest(vectors[3], 10, among=[]) == {}
    assert store.nearest(vectors[3], 0) == {}


def test_vectors_come_back_as_unit_vectors(home: Path) -> None:
    store, named, vectors = filled(home)
    asked = [named[5][0], str(uuid.uuid4()), named[1][0], "x"]
    found = store.vectors(asked)
    assert set(found) == {named[5][0], named[1][0]}
    for place in (5, 1):
        vector = found[named[place][0]]
        assert float(vector @ vectors[place]) > 0.999
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


def test_a_changed_text_has_one_vector_the_new_one(home: Path) -> None:
    store, named, vectors = filled(home)
    other = unit_vectors(1, seed=9)
    changed = (named[4][0], text_digest("another text"))
    assert store.lacking([named[4], changed]).tolist() == [False, True]
    store.put([changed], other)
    assert store.count() == 40
    assert store.lacking([named[4], changed]).tolist() == [True, False]
    assert next(iter(store.nearest(other[0], 1))) == named[4][0]
    assert named[4][0] not in store.nearest(vectors[4], 1)


def test_forgotten_vectors_are_gone_and_their_room_is_given_back(home: Path) -> None:
    store, named, vectors = filled(home, 400)
    reader = MeaningStore(home / "meaning", "onnx:tiny")
    assert reader.count() == 400
    assert store.keep_only([pack_ids([chunk_id for chunk_id, _ in named[99:]])]) == 99
    assert reader.count() == 301
    assert store.file.stat().st_size == HEADER + 400 * RECORD
    assert store.keep_only([pack_ids([chunk_id for chunk_id, _ in named[100:]])]) == 1
    assert store.file.stat().st_size == HEADER + 300 * RECORD
    assert reader.count() == store.count() == 300
    assert list(reader.nearest(vectors[200], 1)) == [named[200][0]]
    assert reader.vectors([named[50][0]]) == {}


def test_a_text_that_is_known_keeps_its_vector_under_another_id(home: Path) -> None:
    store, named, vectors = filled(home)
    again = [(str(uuid.uuid4()), named[2][1]), (str(uuid.uuid4()), text_digest("unknown"))]
    assert store.adopt(again) == 1
    assert store.count() == 41
    assert set(store.nearest(vectors[2], 2)) == {named[2][0], again[0][0]}
    assert store.lacking(again).tolist() == [False, True]


def test_another_model_has_another_file_until_it_is_complete(home: Path) -> None:
    before, named, vectors = filled(home)
    after = MeaningStore(home / "meaning", "onnx:other")
    assert after.count() == 0
    after.put(named[:1], unit_vectors(1, width=8))
    assert before.nearest(vectors[0], 1)
    after.remove_others()
    assert before.count() == 0
    assert before.nearest(vectors[0], 1) == {}
    assert after.count() == 1


def test_a_torn_record_is_not_read_and_is_cut_off_by_the_next_writer(home: Path) -> None:
    store, named, vectors = filled(home)
    whole = store.file.read_bytes()
    store.file.write_bytes(whole + whole[HEADER : HEADER + RECORD - 100])
    reader = MeaningStore(home / "meaning", "onnx:tiny")
    assert reader.count() == 40
    assert list(reader.nearest(vectors[39], 1)) == [named[39][0]]
    with store.writing():
        assert store.file.read_bytes() == whole
    store.put(rows(1, seed=5), unit_vectors(1, seed=5))
    assert reader.count() == 41


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "no header": lambda content: content[:30],
    "header only": lambda content: content[:HEADER],
    "another magic": lambda content: b"X" + content[1:],
    "another width": lambda content: content[:24] + b"\x07" + content[25:],
    "a huge width": lambda content: content[:24] + b"\xff\xff\xff\x7f" + content[28:],
    "all zero": lambda content: bytes(len(content)),
    "all ones": lambda content: b"\xff" * len(content),
    "noise": lambda content: np.random.default_rng(1).bytes(len(content)),
    "noise after the header": lambda content: (
        content[:HEADER] + np.random.default_rng(1).bytes(len(content) - HEADER)
    ),
    "scales of ones": lambda content: content[:HEADER] + b"\xff" * (len(content) - HEADER),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_no_damage_makes_a_reader_fail_and_a_writer_heals_it(home: Path, kind: str) -> None:
    store, named, vectors = filled(home)
    store.file.write_bytes(DAMAGE[kind](store.file.read_bytes()))
    reader = MeaningStore(home / "meaning", "onnx:tiny")
    found = reader.nearest(vectors[0], 40)
    assert all(np.isfinite(list(found.values())))
    assert all(np.isfinite(v).all() for v in reader.vectors([i for i, _ in named]).values())
    with store.writing():
        lacking = store.lacking(named)
        assert lacking.all()
        store.put(named, vectors)
    assert reader.count() == store.count() == 40
    assert list(reader.nearest(vectors[11], 1)) == [named[11][0]]


@pytest.mark.parametrize("scale", [np.nan, np.inf, -np.inf, -1.0, 1e30, 0.5])
def test_an_impossible_scale_is_no_vector(home: Path, scale: float) -> None:
    store, named, vectors = filled(home)
    content = bytearray(store.file.read_bytes())
    place = HEADER + 3 * RECORD + 28
    content[place : place + 4] = np.float32(scale).tobytes()
    store.file.write_bytes(content)
    reader = MeaningStore(home / "meaning", "onnx:tiny")
    assert reader.count() == 39
    assert named[3][0] not in reader.nearest(vectors[3], 40)
    assert reader.vectors([named[3][0]]) == {}


def test_a_flipped_bit_of_a_vector_is_found_by_the_next_writer(home: Path) -> None:
    store, named, _ = filled(home)
    content = bytearray(store.file.read_bytes())
    content[HEADER + 6 * RECORD + 100] ^= 0x40
    store.file.write_bytes(content)
    with store.writing():
        assert np.flatnonzero(store.lacking(named)).tolist() == [6]


def test_a_chunk_that_stands_twice_is_given_once(home: Path) -> None:
    store, named, vectors = filled(home)
    content = store.file.read_bytes()
    store.file.write_bytes(content + content[HEADER : HEADER + RECORD])
    assert (
        list(MeaningStore(home / "meaning", "onnx:tiny").nearest(vectors[0], 2))[0] == named[0][0]
    )
    with store.writing():
        assert store.count() == 40


def test_a_vector_without_direction_or_question_gives_no_nan(home: Path) -> None:
    store = MeaningStore(home / "meaning", "onnx:tiny")
    bad = np.zeros((3, WIDTH), dtype=np.float32)
    bad[1], bad[2, 5] = np.nan, np.inf
    named = rows(3)
    store.put(named, bad)
    assert all(np.isfinite(v).all() for v in store.vectors([i for i, _ in named]).values())
    assert store.nearest(bad[0], 3) == store.nearest(bad[1], 3) == store.nearest(bad[2], 3) == {}
    assert store.nearest(np.ones(7, dtype=np.float32), 3) == {}


def test_the_files_are_the_owners_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        store, _, _ = filled(home)
    finally:
        os.umask(before)
    for path in (store.file.parent, *store.file.parent.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_may_not_be_written_is_told(home: Path) -> None:
    store, named, vectors = filled(home)
    store.file.parent.chmod(0o500)
    store.file.chmod(0o400)
    try:
        with pytest.raises(ReadOnly):
            store.put(named[:1], vectors[:1])
        assert store.count() == 40
    finally:
        store.file.parent.chmod(0o700)


WRITE = """
import sys
from pathlib import Path
import numpy as np
from obsidian_rag.store import MeaningStore
store = MeaningStore(Path(sys.argv[1]), "onnx:tiny")
with store.writing():
    print("held", flush=True)
    for line in sys.stdin:
        store.put([(line.strip(), b"12345678")], np.eye(1, 384, dtype=np.float32))
        print(store.count(), flush=True)
"""


def test_two_readers_follow_a_writer_of_another_process(home: Path) -> None:
    readers = [MeaningStore(home / "meaning", "onnx:tiny") for _ in range(2)]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE, str(home / "meaning")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "held\n"
        with pytest.raises(Busy):
            readers[0].put(rows(1), unit_vectors(1))
        ids = [str(uuid.uuid4()) for _ in range(100)] * 2
        for number, chunk_id in enumerate(ids, 1):
            print(chunk_id, file=writer.stdin, flush=True)
            assert writer.stdout.readline() == f"{min(number, 100)}\n"
            for reader in readers:
                assert reader.count() == min(number, 100)
                assert chunk_id in reader.vectors([chunk_id])
        writer.stdin.close()
    assert set(readers[1].nearest(np.eye(1, WIDTH, dtype=np.float32)[0], 200)) == set(ids)
