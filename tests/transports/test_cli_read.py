"""read: the text on stdout, for the owner of the notes."""

from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault

NOTES = {
    "Journal/2024-01-15.md": "# Day\nline two\n## Evening\nline four\n",
    "private.md": "---\nrag: private\n---\nquiet",
    "never.md": "---\nrag: false\n---\nhidden",
}


@pytest.fixture(autouse=True)
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    made = make_vault(NOTES)
    configure(made, {"security.sensitive_policy": "withhold"})
    return made


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "# Day\nline two\n## Evening\nline four\n"),
        (("--heading", "evening"), "## Evening\nline four\n"),
        (("--lines", "2-3"), "line two\n## Evening\n"),
        (("--lines", "4-"), "line four\n"),
        (("--lines", "2"), "line two\n"),
    ],
)
def test_the_text_is_all_that_is_printed(cli: Cli, options: tuple[str, ...], expected: str) -> None:
    done = cli("read", "Journal/2024-01-15", *options)
    assert (done.code, done.out, done.err) == (0, expected, "")


def test_the_owner_reads_private_notes_without_being_asked(cli: Cli) -> None:
    assert cli("read", "private").out.endswith("quiet")
    assert cli("read", "never").out.endswith("hidden")
    assert cli("read", "private", "--confirm-sensitive").code == 0
    assert cli("read", "private", "--json").json["data"]["sensitive_categories"] == ["private"]


def test_json_is_the_envelope(cli: Cli) -> None:
    assert cli("index").code == 0
    answer = cli("read", "Journal/2024-01-15", "--lines", "2", "--json").json
    assert (answer["status"], answer["data"]["text"]) == ("healthy", "line two")
    assert answer["data"]["untrusted"] is True


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("absent",), "NOT_FOUND"),
        (("private", "--heading", "absent"), "NOT_FOUND"),
        (("../x",), "SECURITY_VIOLATION"),
        ((".obsidian/app.json",), "SECURITY_VIOLATION"),
        (("private", "--lines", "x"), "INVALID_ARGUMENT"),
        (("private", "--lines", "3-2"), "INVALID_ARGUMENT"),
        (("private", "--lines", "0"), "INVALID_ARGUMENT"),
        (("private", "--lines", "99"), "INVALID_ARGUMENT"),
        (("private", "--lines", "1", "--heading", "a"), "INVALID_ARGUMENT"),
        ((), "INVALID_ARGUMENT"),
    ],
)
def test_failures_end_with_2_and_a_code(cli: Cli, arguments: tuple[str, ...], code: str) -> None:
    done = cli("read", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert done.json["data"] is None
    assert code in done.err
