"""Commands and messages as people paste them find the notes that have them."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.search.indexed import files, indexed, write_notes

from obsidian_rag.engine import Engine

NOTES = {
    "Rebase.md": "Squash the last commits:\n\n```\ngit rebase -i HEAD~3\n```\n",
    "Merge.md": "A branch is merged with `git merge` when it is done.\n",
    "Unpack.md": "Unpack an archive with `tar -xzf a.tar.gz` into this folder.\n",
    "Mirror.md": "Mirror a folder:\n\n    rsync -av --delete src/ dst/\n",
    "Pods.md": "To list system pods: kubectl get pods -n kube-system\n",
    "Missing.md": "npm failed: Error: ENOENT: no such file or directory, open '/tmp/x'\n",
    "None.md": "The parser said TypeError: 'NoneType' object is not subscriptable\n",
    "Garden.md": "The garden has a pond and roses.\n",
    "Roof.md": "The garden on the roof has sedum.\n",
    "Delhi.md": "दिल्ली का बगीचा\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("commands")
    with closing(indexed(folder / "home", write_notes(folder / "vault", NOTES))) as engine:
        yield engine


@pytest.mark.parametrize(
    ("pasted", "note"),
    [
        ("git rebase -i HEAD~3", "Rebase.md"),
        ("tar -xzf a.tar.gz", "Unpack.md"),
        ("rsync -av --delete src/ dst/", "Mirror.md"),
        ("kubectl get pods -n kube-system", "Pods.md"),
        ("Error: ENOENT: no such file or directory, open '/tmp/x'", "Missing.md"),
        ("TypeError: 'NoneType' object is not subscriptable", "None.md"),
    ],
)
def test_what_is_pasted_finds_its_own_note(engine: Engine, pasted: str, note: str) -> None:
    assert files(engine, pasted)[0] == note


@pytest.mark.parametrize("question", ["garden -roof", "garden NOT roof"])
def test_an_exclusion_still_excludes(engine: Engine, question: str) -> None:
    found = files(engine, question)
    assert found[0] == "Garden.md"
    assert "Roof.md" not in found


def test_a_word_is_not_excluded_by_a_part_of_it_before_a_vowel_sign(engine: Engine) -> None:
    assert files(engine, "बगीचा -दिल")[0] == "Delhi.md"
    assert "Delhi.md" not in files(engine, "बगीचा -दिल्ली")
