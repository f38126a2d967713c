"""The error tree: stable codes, and what each means for a caller."""

import inspect

import pytest

from obsidian_rag import errors
from obsidian_rag.errors import ObsidianRagError

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, ObsidianRagError)
]
KINDS = [value for value in CLASSES if value is not ObsidianRagError]
BY_CODE = {kind.code: kind for kind in KINDS}
DESIGN_CODES = {
    "OLLAMA_UNREACHABLE",
    "INDEX_NOT_FOUND",
    "INDEX_CORRUPTED",
    "SECURITY_VIOLATION",
    "SENSITIVE_FILTERED",
    "INDEXER_FAILED",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "CONFIG_INVALID",
    "EMBEDDING_MISMATCH",
    "INDEX_STALE",
    "INDEX_INCOMPLETE",
    "VAULT_AWAY",
    "BUSY",
    "READ_ONLY",
    "NOTE_CHANGED",
    "STORE_FOREIGN",
    "PROVIDER_FAILED",
}


def test_every_class_has_a_code_of_its_own_and_every_code_of_the_design_exists() -> None:
    assert len(BY_CODE) == len(KINDS)
    assert set(BY_CODE) >= DESIGN_CODES
    # Only LiveSync adds codes that the design does not list one by one.
    assert all(code.startswith("LIVESYNC_") for code in set(BY_CODE) - DESIGN_CODES)


@pytest.mark.parametrize(
    ("code", "status", "recoverable"),
    [
        ("OLLAMA_UNREACHABLE", "degraded", True),
        ("INDEX_NOT_FOUND", "unavailable", True),
        ("INDEX_CORRUPTED", "unavailable", True),
        ("SECURITY_VIOLATION", "unavailable", False),
        ("SENSITIVE_FILTERED", "degraded", True),
        ("INDEXER_FAILED", "unavailable", True),
        ("INDEX_STALE", "degraded", True),
        ("INDEX_INCOMPLETE", "degraded", True),
        ("VAULT_AWAY", "degraded", True),
        ("EMBEDDING_MISMATCH", "degraded", True),
        ("PROVIDER_FAILED", "degraded", True),
        ("BUSY", "unavailable", True),
    ],
)
def test_health_and_recovery_follow_the_matrix_of_the_design(
    code: str, status: str, recoverable: bool
) -> None:
    assert (BY_CODE[code].status, BY_CODE[code].recoverable) == (status, recoverable)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_class_is_drawn_in_the_tree_with_its_code(kind: type[ObsidianRagError]) -> None:
    tree = errors.__doc__ or ""
    drawn = [line.split() for line in tree.splitlines() if kind.__name__ in line.split()]
    assert len(drawn) == 1
    assert kind is ObsidianRagError or kind.code in drawn[0]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_class_says_how_a_program_ends_and_what_http_answers(
    kind: type[ObsidianRagError],
) -> None:
    assert kind.exit_code == 2
    assert 400 <= kind.http_status < 600
    assert kind.__doc__


def test_an_instance_carries_a_sentence_and_a_next_step() -> None:
    error = errors.Busy("Somebody writes.", "Wait.")
    assert (error.message, error.suggestion, str(error)) == (
        "Somebody writes.",
        "Wait.",
        "Somebody writes.",
    )
