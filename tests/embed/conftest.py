"""What the tests of several embedders need."""

import pytest


@pytest.fixture
def waits() -> list[float]:
    """The pauses before another try, which take no time in tests."""
    return []
