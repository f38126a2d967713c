"""A vault as a value."""

from pathlib import Path

import pytest

from obsidian_rag.errors import SecurityViolation
from obsidian_rag.vault import NoteFile, Rules, SkippedFile, Vault, VaultMode


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    (tmp_path / "Denied").mkdir()
    for name in ("a.md", "b.png", "Denied/c.md"):
        (tmp_path / name).write_text("text")
    (tmp_path / "link.md").symlink_to("a.md")
    return Vault(tmp_path, Rules(deny_dirs=("Denied",), max_file_bytes=4))


def test_a_vault_may_be_written_and_has_no_link_until_it_is_indexed(vault: Vault) -> None:
    assert (vault.mode, vault.link_id, vault.max_file_bytes) == (VaultMode.READ_WRITE, "", 4)


def test_a_vault_knows_its_notes_by_its_own_rules(vault: Vault) -> None:
    assert sorted(entry.rel_path for entry in vault.scan().files) == ["a.md", "link.md"]
    there = {name: vault.has_note(name) for name in ("a.md", "b.png", "Denied/c.md", "no.md")}
    assert there == {"a.md": True, "b.png": False, "Denied/c.md": False, "no.md": False}
    assert not vault.has_note("x" * 5000 + ".md")


def test_a_vault_reads_inside_its_boundary_and_limits(vault: Vault) -> None:
    assert isinstance(vault.read("a.md"), NoteFile)
    (vault.root / "a.md").write_text("longer")
    assert vault.read("a.md") == SkippedFile("a.md", "too_large")
    assert vault.relative(str(vault.root / "a.md")) == "a.md"
    assert vault.real_path("link.md") == "a.md"
    with pytest.raises(SecurityViolation):
        vault.relative("../outside.md")
