"""relate: one entry in one note's `related:` field, and not a byte more."""

from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.integration.living import QUICK, living
from tests.transports.command_line import in_another_process
from tests.waiting import until

BOG_ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
GARDEN = (
    "---\r\n# mine\r\ntags: [water]  # wet\r\nrelated:\r\n  - '[[Pump]]'\r\n---\r\n# Garden\r\nx"
)
NOTES = {
    "Garden.md": GARDEN,
    "Bog.md": f'---\nid: "{BOG_ID}"\n---\n# Bog\n',
    "Pump.md": "# Pump\n",
    "Old.md": "---\nuuid: f47ac10b-58cc-4372-a567-0e02b2c3d479\n---\n",
    "Bad.md": "---\nid: 17\n---\n",
}


def garden(vault: Path) -> str:
    return (vault / "Garden.md").read_bytes().decode()


def test_a_relation_is_added_and_every_other_byte_stays(cli: Cli, vault: Path) -> None:
    done = cli("relate", "Garden", "Bog", "--rel", "feeds")
    assert (done.code, done.err) == (0, "")
    assert done.out == "Garden.md → Bog.md  (feeds)\n"
    entry = f'  - id: "{BOG_ID}"\r\n    rel: "feeds"\r\n    auto: false\r\n'
    assert garden(vault) == GARDEN.replace("'[[Pump]]'\r\n", f"'[[Pump]]'\r\n{entry}")
    assert (vault / "Bog.md").read_text() == NOTES["Bog.md"]


def test_the_simple_form_is_written_when_it_is_configured(
    cli: Cli, vault: Path, configure: Configure
) -> None:
    configure(vault, {"relations.rich_format": False})
    assert cli("relate", "Garden", "Bog").out == "Garden.md → Bog.md\n"
    assert garden(vault) == GARDEN.replace("'[[Pump]]'\r\n", f"'[[Pump]]'\r\n  - \"{BOG_ID}\"\r\n")


def test_a_relation_that_is_there_stays_as_it_is(cli: Cli, vault: Path) -> None:
    cli("relate", "Garden", "Bog", "--rel", "feeds")
    before = garden(vault)
    done = cli("relate", "Garden", "Bog", "--rel", "drains")
    assert (done.code, garden(vault)) == (0, before)
    assert done.out == "Garden.md → Bog.md  (feeds)  (was there already)\n"


def test_json_is_the_answer_of_the_tool(cli: Cli, vault: Path) -> None:
    done = cli("relate", "Garden", "Old", "--json")
    assert (done.code, done.json["status"]) == (0, "healthy")
    data = done.json["data"]
    assert data.pop("link_id")
    assert data == {
        "vault": "vault",
        "vault_label": "Primary vault",
        "source": "Garden.md",
        "target": "Old.md",
        "id": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "rel": "related",
        "written": True,
        "id_added": False,
    }


def test_a_target_without_an_id_needs_your_word(cli: Cli, vault: Path) -> None:
    refused = cli("relate", "Garden", "Pump")
    assert (refused.code, garden(vault)) == (2, GARDEN)
    assert "--add-id" in refused.err
    done = cli("relate", "Garden", "Pump", "--add-id")
    assert done.code == 0
    first, id_line, rest = (vault / "Pump.md").read_text().split("\n", 2)
    assert (first, rest) == ("---", "---\n# Pump\n")
    written = id_line.removeprefix('id: "').removesuffix('"')
    assert f"Pump.md now has the id {written}" in done.out
    assert written in garden(vault)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("Garden", "Garden"), "INVALID_ARGUMENT"),
        (("Garden", "Bad", "--add-id"), "INVALID_ARGUMENT"),
        (("Garden", "Nowhere"), "NOT_FOUND"),
        (("Nowhere", "Bog"), "NOT_FOUND"),
        (("Garden", "../Bog.md"), "SECURITY_VIOLATION"),
        (("Garden", "Bog", "--rel", "a\nb"), "INVALID_ARGUMENT"),
        (("Garden",), "INVALID_ARGUMENT"),
    ],
)
def test_what_cannot_be_related_changes_nothing(
    cli: Cli, vault: Path, arguments: tuple[str, ...], code: str
) -> None:
    done = cli("relate", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert "hint" in done.err
    assert {name: (vault / name).read_bytes().decode() for name in NOTES} == NOTES


def test_a_running_daemon_writes_it_and_soon_knows_it(
    make_vault: MakeVault, configure: Configure
) -> None:
    vault = make_vault(NOTES)
    configure(vault, QUICK)
    with living() as daemon:
        daemon.index()
        assert in_another_process("relate", "Garden", "Bog").code == 0
        assert BOG_ID in garden(vault)

        def is_linked() -> bool:
            found = daemon.call("related", note="Garden", hide_linked=False)["data"]["results"]
            return [one["linked"] for one in found if one["title"] == "Bog"] == [True]

        until(is_linked)
