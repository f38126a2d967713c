"""index and reindex ask before notes go to an embedder elsewhere; nobody else begins it.

0.0.0.0 is not loopback by name, so it counts as another machine, and yet it leads to this one.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.embed.provider_doubles import KEY, FakeOpenAI, fake_openai
from tests.fixture_types import Cli
from tests.integration.living import QUICK, Configure, MakeVault, living
from tests.transports.command_line import on_terminal_in_process

NOTES = {"Garden.md": "# Garden\n\nThe roses need water.\n", "Debt.md": "I owe Bo forty crowns.\n"}


@pytest.fixture
def server(
    make_vault: MakeVault, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeOpenAI]:
    """An embedder elsewhere, chosen in the settings and never asked so far."""
    monkeypatch.setenv("MY_KEY", KEY)
    with fake_openai() as fake:
        fake.key = KEY
        configure(
            make_vault(NOTES),
            {
                **QUICK,
                "embedding.provider": "openai",
                "embedding.base_url": fake.url.replace("127.0.0.1", "0.0.0.0"),
                "embedding.model": "tiny",
                "embedding.api_key_env": "MY_KEY",
                "embedding.external_consent": True,
                "embedding.price_per_million_tokens": 0.02,
                "security.local_only": False,
            },
        )
        yield fake
        assert fake.violations == []


def test_a_script_has_to_say_yes(cli: Cli, server: FakeOpenAI) -> None:
    for command in ("index", "sync", "reindex"):
        done = cli(command, "--json")
        assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")
        assert "--yes" in done.json["error"]["suggestion"]
    assert server.paths == []
    assert cli("index", "--yes", "--json").code == 0
    assert cli("reindex", "--json").code == 0
    assert "owe" not in str(server.inputs)


def test_a_person_is_told_how_much_it_is_and_asked(server: FakeOpenAI) -> None:
    question = "Send the rest?"
    refused = on_terminal_in_process("index", answers=[(question, "n")])
    assert (refused.code, server.paths) == (2, [])
    assert "The text of 1 note, about" in refused.err
    assert "cost less than 0.01" in refused.err
    done = on_terminal_in_process("index", answers=[(question, "y")])
    assert done.code == 0
    assert server.requests
    assert question not in on_terminal_in_process("index").err


def test_the_key_is_nowhere_on_disk_or_on_screen(cli: Cli, server: FakeOpenAI, home: Path) -> None:
    done = cli("index", "--yes")
    told = [done.out + done.err]
    for command in ("status", "doctor", "config show"):
        done = cli(*command.split())
        told.append(done.out + done.err)
    server.key = "another"
    (done,) = [cli("search", "roses")]
    assert "PROVIDER_FAILED" in done.err
    assert "MY_KEY" in done.err
    told.append(done.out + done.err)
    told += [file.read_bytes().decode("latin-1") for file in home.rglob("*") if file.is_file()]
    assert not [text for text in told if KEY in text]


def test_a_daemon_begins_nothing_and_goes_on_after_a_yes(cli: Cli, server: FakeOpenAI) -> None:
    with living() as daemon:
        job = daemon.call("index", mode="full")["data"]["job_id"]
        failed = daemon.wait_for("job", id=job, status="failed")
        assert failed["error"]["code"] == "CONFIG_INVALID"
        assert server.paths == []
        assert cli("index", "--yes", "--json").code == 0
        assert daemon.search("roses")[0] == "Garden.md"
        assert server.inputs[-1] == ["roses"]
