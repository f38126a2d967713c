"""What an index holds, and whether everything in it is as it should be."""

from obsidian_rag.engine import Engine, examine


def stored_files(engine: Engine) -> list[str]:
    """The file of every chunk."""
    return sorted(path for path, *_ in engine.chunks.texts())


def assert_sound(engine: Engine) -> None:
    """Every check of `doctor --deep` is content."""
    found = {finding.check: finding.message for finding in examine(engine, deep=True)
             if finding.verdict != "ok"}  # fmt: skip
    assert not found, str(found)
