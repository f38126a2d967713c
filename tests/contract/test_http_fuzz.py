"""The HTTP door against its own OpenAPI document: generated requests, good and bad.

Run with schemathesis and nearly all its checks: no server errors, answers as documented, wrong
methods and missing tokens too. What the document cannot say (a folder that must
exist, one of two parameters that is needed) may make a well-formed call fail with 400.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import (
    ChecksConfig,
    GenerationConfig,
    PositiveDataAcceptanceConfig,
    ProjectConfig,
    ProjectsConfig,
)
from schemathesis.specs.openapi.checks import negative_data_rejection
from tests.transports.http_client import OpenDoor, installed, open_door
from tests.waiting import PATIENCE_S

from obsidian_rag.transports.http.openapi import openapi

EXAMPLES = 30
ACCEPTED = ["2xx", "400", "403", "404", "429"]
CONFIG = schemathesis.Config(
    seed=4,
    projects=ProjectsConfig(
        default=ProjectConfig(
            request_timeout=PATIENCE_S,
            generation=GenerationConfig(max_examples=EXAMPLES, deterministic=True),
            checks=ChecksConfig(
                positive_data_acceptance=PositiveDataAcceptanceConfig(expected_statuses=ACCEPTED),
            ),
        )
    ),
)
# A stream has no end to wait for; tests/transports/test_http_events.py is about it.
SCHEMA = schemathesis.openapi.from_dict(openapi(), config=CONFIG).exclude(path="/events")


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    # Whoever asks it to stop is told that it does.
    with open_door(installed(tmp_path_factory.mktemp("fuzz")), on_shutdown=lambda: None) as opened:
        yield opened


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_door_keeps_its_word(case: schemathesis.Case[Any], door: OpenDoor) -> None:
    case.call_and_validate(
        base_url=door.url,
        headers={"Authorization": f"Bearer {door.token}"},
        # Numbers and lists may be written as strings, which the document does not say.
        excluded_checks=[negative_data_rejection],
    )
