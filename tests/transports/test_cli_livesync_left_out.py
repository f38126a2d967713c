"""What LiveSync's filters keep back, and how a sync says what is not synced."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import Cli, MakeVault
from tests.livesync.nodes import TestNode
from tests.livesync.pouch import Server
from tests.livesync.proxy import FaultyProxy
from tests.livesync.setup_uris import settings_of, setup_uri
from tests.livesync.vectors import VECTORS
from tests.transports.command_line import COMMAND, Done, on_terminal
from tests.transports.livesync_site import PASSPHRASE, URI_PASSPHRASE, device_of, options_of
from tests.waiting import PATIENCE_S

from obsidian_rag.livesync import Tweaks
from obsidian_rag.livesync.couchdb.remote import Remote

MakeDevice = Callable[..., TestNode]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "livesync.md"

pytestmark = pytest.mark.usefixtures("no_keyring", "livesync_secrets")


@pytest.fixture
def device(tmp_path: Path, remote: Remote) -> Iterator[MakeDevice]:
    """Makes another device, which has set the database up."""
    made: list[TestNode] = []

    def make(tweaks: Tweaks | None = None, passphrase: str | None = None) -> TestNode:
        made.append(device_of(tmp_path / "device", remote, tweaks, passphrase))
        return made[-1]

    yield make
    for node in made:
        node.close()


def set_up(cli: Cli, remote: Remote, vault: Path, **settings: object) -> Done:
    uri = setup_uri(settings_of(remote, **settings), URI_PASSPHRASE)
    return cli(
        "livesync", "setup", uri, "--passphrase-env", "URI_PASSPHRASE", "--vault", str(vault)
    )


def documents(pouch: Server, remote: Remote) -> dict[str, dict[str, Any]]:
    _, found = pouch.request("GET", f"/{remote.database}/_all_docs?include_docs=true")
    assert isinstance(found, dict)
    return {row["id"]: row["doc"] for row in found["rows"]}


def living(pouch: Server, remote: Remote) -> set[str]:
    return {
        one["path"]
        for one in documents(pouch, remote).values()
        if one.get("type") in ("plain", "newnote") and not one.get("deleted")
    }


PLANTED = {
    "note.md": "a note\n",
    "secret.md": "a secret\n",
    "Work/scratch.tmp": "scratch\n",
    "ignored.md": "ignored by Git\n",
    "Work/build/out.md": "built\n",
    ".gitignore": "ignored.md\n",
    "Work/.gitignore": "build/\n",
}


def test_the_filters_of_a_setup_uri_are_obeyed_both_ways(
    cli: Cli, pouch: Server, remote: Remote, make_vault: MakeVault, device: MakeDevice
) -> None:
    other = device()
    other.write("theirs/secret.md", "their secret\n")
    other.write("theirs.md", "theirs\n")
    other.sync()
    vault = make_vault(PLANTED)
    done = set_up(
        cli, remote, vault, syncIgnoreRegEx=r"(^|/)SECRET\.md$|[]|\.tmp$", useIgnoreFiles=True
    )
    assert done.code == 0, done.err
    told = done.out
    done = cli("livesync", "run", "--once")
    assert done.code == 0, done.err
    assert living(pouch, remote) == {"note.md", "theirs.md", "theirs/secret.md"}
    assert not (vault / "theirs").exists()
    assert (vault / "secret.md").read_text() == "a secret\n"
    assert done.out.splitlines() == [
        "1 taken, 1 sent",
        "not synced  3: matches syncIgnoreRegEx: Work/scratch.tmp, secret.md, theirs/secret.md",
        "not synced  1: is ignored by .gitignore: ignored.md",
        "not synced  1: is ignored by Work/.gitignore: Work/build/out.md",
    ]
    assert re.search(r"^filters +syncIgnoreRegEx, .gitignore$", told, re.MULTILINE)


def test_a_filter_that_is_set_later_deletes_nothing(
    cli: Cli, pouch: Server, remote: Remote, make_vault: MakeVault, device: MakeDevice
) -> None:
    other = device()
    vault = make_vault({"note.md": "a\n", "secret.md": "b\n"})
    assert set_up(cli, remote, vault).code == 0
    assert cli("livesync", "run", "--once").out == "2 sent\n"
    assert cli("config", "set", "livesync.syncOnlyRegEx", "^note").code == 0
    done = cli("livesync", "run", "--once")
    assert done.out.splitlines() == [
        "Nothing to do, but 1 file is not synced",
        "not synced  1: does not match syncOnlyRegEx: secret.md",
    ]
    (vault / "secret.md").unlink()
    cli("livesync", "run", "--once")
    other.sync()
    assert set(other.files()) == living(pouch, remote) == {"note.md", "secret.md"}


def test_a_pattern_that_cannot_be_followed_is_refused_by_name(
    cli: Cli, remote: Remote, make_vault: MakeVault, device: MakeDevice, home: Path
) -> None:
    device()
    done = set_up(cli, remote, make_vault({}), syncIgnoreRegEx=r"^(a)\1")
    assert done.code == 2
    assert "LIVESYNC_INCOMPATIBLE" in done.err
    assert "syncIgnoreRegEx" in done.err
    assert not (home / "config.json").exists()


def test_file_that_the_server_refuses_as_too_large_is_named_with_the_limit(
    cli: Cli, remote: Remote, far_remote: Remote, proxy: FaultyProxy, make_vault: MakeVault
) -> None:
    vault = make_vault({"small.md": "x\n"})
    here = options_of(far_remote, vault)
    assert cli("livesync", "push", "--once", "--init", *here).code == 0
    (vault / "large.md").write_text("y" * 5000)
    page = b"<html><h1>413 Request Entity Too Large</h1></html>"  # as nginx says it
    proxy.answer(413, lambda one: b"yyyy" in one.body, page, "text/html")

    done = cli("livesync", "push", "--once", *here)

    assert done.code == 1
    assert done.out.splitlines() == [
        "Nothing was synced: 1 file could not be",
        "not synced  1: the server refuses it as too large (HTTP 413): raise its limits"
        " max_document_size and max_http_request_size, or a proxy's client_max_body_size: large.md",
    ]
    found = cli("livesync", "check", "--json", *here).json["data"]["quarantined"]
    assert [(one["path"], one["code"]) for one in found] == [("large.md", "LIVESYNC_TOO_LARGE")]
    assert "max_document_size" in found[0]["message"]
    proxy.heal()
    assert cli("livesync", "push", "--once", *here).out == "1 sent\n"


def test_the_first_sync_is_counted_and_what_a_symlink_keeps_out_is_named(
    cli: Cli, remote: Remote, make_vault: MakeVault, device: MakeDevice, tmp_path: Path
) -> None:
    other = device()
    other.write("note.md", "theirs\n")
    other.write("linked/theirs.md", "theirs too\n")
    other.sync()
    vault, elsewhere = make_vault({"mine.md": "mine\n"}), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (vault / "linked").symlink_to(elsewhere)
    done = set_up(cli, remote, vault, useIgnoreFiles=True)
    assert re.search("^filters +none$", done.out, re.MULTILINE), "there is no .gitignore"
    done = cli("livesync", "run", "--once")
    assert "[livesync] [INFO] Initial sync complete: 2 synced, 2 skipped" in done.err.splitlines()
    assert not list(elsewhere.iterdir())
    told = cli("livesync", "check").out
    assert "linked/theirs.md" in told
    assert "'linked' is a symlink" in told
    (vault / "linked").unlink()
    done = cli("livesync", "run", "--once")
    assert (done.code, (vault / "linked" / "theirs.md").read_text()) == (0, "theirs too\n")
    assert "Initial sync" not in done.err


def test_a_new_database_is_one_that_a_device_of_today_accepts(
    cli: Cli, pouch: Server, remote: Remote, make_vault: MakeVault
) -> None:
    here = options_of(remote, make_vault({"a.md": "x\n"}))
    assert cli("livesync", "push", "--once", "--init", *here).code == 0
    _, found = pouch.request("GET", f"/{remote.database}/_local/obsydian_livesync_milestone")
    assert isinstance(found, dict)
    published = found["tweak_values"]["PREFERRED"]
    defaults = VECTORS["defaults"]
    device: dict[str, Any] = {**defaults["DEFAULT_SETTINGS"], "handleFilenameCaseSensitive": False}
    # What LiveSync turns on for every new vault.
    device["usePluginSyncV2"] = True
    compared = defaults["TweakValuesShouldMatchedTemplate"]
    assert {key: published.get(key) for key in compared} == {key: device[key] for key in compared}


def test_run_and_status_list_what_is_not_synced(
    cli: Cli, remote: Remote, make_vault: MakeVault, device: MakeDevice
) -> None:
    device()
    vault = make_vault(
        {"a:b.md": "colon\n", "Plan.md": "one\n", "PLAN.md": "two\n", 'say "hi".md': "quotes\n"}
    )
    (vault / "big.bin").write_bytes(b"\0" * (2**20 + 1))
    assert set_up(cli, remote, vault).code == 0
    first = cli("livesync", "run", "--once")
    expected = [
        "not synced  1: differs from another file only in case: Plan.md",
        "not synced  1: holds a colon: a:b.md",
        'synced, but 1: holds characters that Windows and Android cannot write: say "hi".md',
    ]
    assert first.out.splitlines() == ["3 sent", *expected]
    again = cli("livesync", "run", "--once")
    assert again.out.splitlines() == ["Nothing to do, but 2 files are not synced", *expected]
    assert cli("livesync", "run", "--dry-run").out.splitlines()[1:] == expected
    status = cli("livesync", "status")
    assert status.out.splitlines()[-3:] == expected
    told = cli("livesync", "status", "--json").json["data"]["not_synced"]
    assert [one["paths"] for one in told] == [["Plan.md"], ["a:b.md"], ['say "hi".md']]


def test_a_continuous_sync_logs_what_is_not_synced(
    remote: Remote, make_vault: MakeVault, device: MakeDevice
) -> None:
    device()
    here = options_of(remote, make_vault({"a:b.md": "colon\n"}))
    with subprocess.Popen(
        [*COMMAND, "livesync", "run", *here],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:  # ends with the process, whatever happens
            said += line
            if "Not synced" in line:
                break
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=PATIENCE_S)[1]
    assert "Not synced: holds a colon: a:b.md\n" in said


def test_a_piece_with_a_byte_order_mark_is_not_compressed(
    cli: Cli, pouch: Server, remote: Remote, make_vault: MakeVault
) -> None:
    marked = "\ufeff# Marked\n" + "the same line again and again\n" * 20
    vault = make_vault({"marked.md": marked.encode(), "plain.md": marked[1:]})
    here = options_of(remote, vault)
    assert cli("livesync", "push", "--once", "--init", "--compress", *here).code == 0
    found = documents(pouch, remote)
    first = found[found["marked.md"]["children"][0]]["data"]
    assert first.startswith("\ufeff# Marked")
    assert found[found["plain.md"]["children"][0]]["data"].startswith("\x0eLZ\x1d")


def test_a_passphrase_for_a_database_that_is_not_encrypted_is_refused(
    cli: Cli, remote: Remote, make_vault: MakeVault, device: MakeDevice, home: Path
) -> None:
    device()
    vault = make_vault({"a.md": "x\n"})
    here = options_of(remote, vault)
    done = cli("livesync", "setup", *here, "--passphrase-env", "NOTES_PASSPHRASE")
    assert done.code == 2
    assert "The database is not encrypted, but a passphrase was given." in done.err
    assert not (home / "config.json").exists()
    done = cli(
        "livesync", "push", "--once", *here, "--passphrase-env", "NOTES_PASSPHRASE", "--json"
    )
    assert done.json["error"]["code"] == "LIVESYNC_PASSPHRASE"
    secret = ("--passphrase-env", "NOTES_PASSPHRASE", "--no-encrypt")
    assert cli("livesync", "setup", *here, *secret).code == 0
    assert cli("livesync", "push", "--once").out == "1 sent\n"


def test_on_a_terminal_the_user_is_asked_about_a_passphrase_that_nothing_uses(
    remote: Remote, make_vault: MakeVault, device: MakeDevice, home: Path
) -> None:
    device()
    here = options_of(remote, make_vault({}))
    command = ("livesync", "setup", *here, "--passphrase-env", "NOTES_PASSPHRASE")
    question = "Go on without encryption?"
    assert on_terminal(*command, answers=[(question, "n")]).code == 2
    assert not (home / "config.json").exists()
    assert on_terminal(*command, answers=[(question, "y")]).code == 0


def test_a_database_that_lost_its_encryption_gets_nothing(
    cli: Cli, pouch: Server, remote: Remote, make_vault: MakeVault, device: MakeDevice
) -> None:
    device(Tweaks(encrypt=True), PASSPHRASE)
    vault = make_vault({"a.md": "x\n"})
    here = options_of(remote, vault)
    assert cli("livesync", "setup", *here, "--passphrase-env", "NOTES_PASSPHRASE").code == 0
    address = f"/{remote.database}/_local/obsydian_livesync_milestone"
    _, milestone = pouch.request("GET", address)
    assert isinstance(milestone, dict)
    milestone["tweak_values"]["PREFERRED"]["encrypt"] = False
    assert pouch.request("PUT", address, milestone)[0] == 201
    done = cli("livesync", "run", "--once", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "LIVESYNC_PASSPHRASE")
    assert living(pouch, remote) == set()


def test_every_command_of_the_family_can_name_the_database(
    cli: Cli, remote: Remote, make_vault: MakeVault, device: MakeDevice, home: Path
) -> None:
    other = device()
    vault = make_vault({"a.md": "x\n", "b.md": "y\n"})
    here = options_of(remote, vault)
    assert cli("livesync", "run", "--once", *here).out == "2 sent\n"
    other.sync()
    (other.root / "b.md").unlink()
    other.sync()
    assert cli("livesync", "run", "--once", *here).out == "1 deleted here\n"
    assert cli("livesync", "check", *here).out.startswith("1 file in sync")
    assert [
        one["path"] for one in cli("livesync", "restore", *here, "--json").json["data"]["files"]
    ] == ["b.md"]
    assert cli("livesync", "restore", "b.md", *here).code == 0
    assert (vault / "b.md").read_text() == "y\n"
    assert cli("livesync", "resolve", *here, "--json").json["data"]["conflicts"] == []
    assert cli("livesync", "unlock", *here).code == 0
    assert not (home / "config.json").exists()


def commands_of(*sections: str) -> list[str]:
    """What the guide shows in these sections, in order."""
    text = GUIDE.read_text("utf-8")
    shown = []
    for section in sections:
        body = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
        for block in re.findall(r"```sh\n(.*?)```", body, re.DOTALL):
            shown += [line.partition("  #")[0].strip() for line in block.splitlines()]
    return shown


def test_the_guide_ends_in_a_search_that_answers(
    cli: Cli, remote: Remote, tmp_path: Path, device: MakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = device()
    other.write("Garden/Ferns.md", "# Ferns\n\nFerns grow in the shade, with wet feet.\n")
    other.write("secret.md", "keep out\n")
    other.sync()
    monkeypatch.setenv("HOME", str(tmp_path / "alice"))
    notes = tmp_path / "alice" / "Notes"
    settings = settings_of(remote, syncIgnoreRegEx="^secret", syncInternalFiles=True)
    uri = setup_uri(settings, URI_PASSPHRASE)
    shown = commands_of("Connect", "Look, then sync")
    # Other ways to connect, and what runs until it is stopped.
    left_out = ("wl-paste", "obsidian-rag livesync setup --url")
    followed = [
        line
        for line in shown
        if not line.startswith(left_out) and line != "obsidian-rag livesync run"
    ]
    assert followed[0] == "mkdir -p ~/Notes"
    notes.mkdir(parents=True)
    for line in followed[1:]:
        words = [os.path.expanduser(word) for word in shlex.split(line)]  # noqa: PTH111
        assert words[0] == "obsidian-rag"
        if "setup" in words:
            words[words.index("obsidian://setuplivesync?settings=...")] = uri
            question = "Passphrase of the setup URI"
            done = on_terminal(*words[1:], answers=[(question, URI_PASSPHRASE)])
            assert "hidden files" in done.err
        else:
            done = cli(*words[1:])
        assert done.code == 0, (line, done.err)
    assert words[1] == "search"
    assert "Garden/Ferns" in done.out
    assert sorted(file.name for file in notes.rglob("*.md")) == ["Ferns.md"]
