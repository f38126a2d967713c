import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_rag.errors import SecurityViolation
from obsidian_rag.vault import Rules, check_relative, resolve, scan
from obsidian_rag.vault.boundary import is_harmless, open_inside, relative_to_root

NASTY = (
    ["..", ".", "", "~", "/", "\\", "//", "%2e%2e", "%2f", "%5c", "%252e", "．．", "‥", "\0", "C:"]
    + ["a", "b.md", "in", "out", "up", "abs", "loop", "chain", "hop", "...", " ", "CON", "%", "\n"]
    + ["secret.md", "vault", "vault-evil"]
)
parts = st.lists(
    st.one_of(st.sampled_from(NASTY), st.text(max_size=4), st.characters(categories=["Cs"])),
    max_size=7,
)
paths = st.tuples(st.sampled_from(["/", "", "\\", "%2f"]), parts).map(lambda p: p[0].join(p[1]))
names = st.lists(st.sampled_from([*NASTY, "．", "／", " ", "."]), max_size=4).map("".join)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("boundary")
    root = base / "vault"
    (root / "a").mkdir(parents=True)
    (base / "vault-evil").mkdir()
    for place in (base, base / "vault-evil", root, root / "a"):
        (place / "secret.md").write_text(
            "outside" if place in (base, base / "vault-evil") else "in"
        )
    (root / "in").symlink_to("a")
    (root / "out").symlink_to("../vault-evil")
    (root / "up").symlink_to("..")
    (root / "abs").symlink_to(base)
    (root / "loop").symlink_to("loop/../..")
    (root / "chain").symlink_to("up/vault-evil")
    (root / "a/hop").symlink_to("../up/vault")
    yield root


@given(rel=paths)
def test_whatever_resolve_accepts_is_inside_the_real_root(root: Path, rel: str) -> None:
    try:
        place = resolve(root, rel)
    except SecurityViolation:
        return
    assert Path(os.path.realpath(place)).is_relative_to(root.resolve())
    assert ".." not in place.parts


@given(rel=paths)
def test_whatever_open_accepts_holds_inside_content(root: Path, rel: str) -> None:
    try:
        with open_inside(root, rel) as stream:
            assert stream.read() == b"in"
    except (SecurityViolation, OSError):
        return


@given(rel=paths)
def test_a_checked_path_is_a_fixed_point(rel: str) -> None:
    try:
        once = check_relative(rel)
    except SecurityViolation:
        return
    assert check_relative(once) == once
    assert not once.startswith("/")
    assert not {"..", ".", ""} & set(once.split("/"))


@given(rel=paths)
def test_relative_to_root_never_leaves(root: Path, rel: str) -> None:
    for given_path in (rel, f"{root}/{rel}"):
        try:
            found = relative_to_root(root, given_path)
        except SecurityViolation:
            continue
        assert check_relative(found) == found


@given(name=st.one_of(st.text(max_size=8), names), where=st.sampled_from(["", "a/"]))
def test_a_harmless_name_is_accepted_in_any_place(name: str, where: str) -> None:
    if "/" not in name and is_harmless(name):
        assert check_relative(where + name) == where + name


name_bytes = st.binary(min_size=1, max_size=6).filter(lambda b: not set(b) & {0, 0x2F})


@given(names=st.lists(name_bytes, max_size=4))
def test_every_scanned_note_can_be_opened(
    tmp_path_factory: pytest.TempPathFactory, names: list[bytes]
) -> None:
    vault = tmp_path_factory.mktemp("names")
    for name in {name for name in names if name not in (b".", b"..")}:
        folder = vault / os.fsdecode(name)
        folder.mkdir()
        (folder / os.fsdecode(name + b".md")).write_bytes(b"x")
    for entry in scan(vault, Rules()).files:
        assert check_relative(entry.rel_path) == entry.rel_path
        with open_inside(vault, entry.rel_path) as stream:
            assert stream.read() == b"x"
