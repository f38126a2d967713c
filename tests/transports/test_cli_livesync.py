"""`livesync push`, `pull` and `run`, as a user or a release check runs them: without a config."""

import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.fixture_types import Cli, MakeVault
from tests.folders import files_below
from tests.livesync.nodes import TestNode
from tests.transports.command_line import COMMAND, in_another_process, on_terminal
from tests.transports.livesync_site import PASSPHRASE, device_of, forms_of, options_of
from tests.waiting import PATIENCE_S, until

from obsidian_rag.livesync import Tweaks
from obsidian_rag.livesync.couchdb.remote import Remote

FILES: dict[str, str | bytes] = {
    "Inbox/x.md": "# Inbox\n" + "Ferns like shade and wet feet.\n" * 20,
    "Ünïcode name.md": "crlf\r\nstays \U0001f331\n",
    "image.png": bytes(range(256)) * 300,
    "empty.md": "",
    "_under.md": "begins with an underscore\n",
}
# Options, whether a passphrase is needed, and what the database says afterwards.
KINDS: dict[str, tuple[list[str], bool, Tweaks]] = {
    "plain": (["--init"], False, Tweaks()),
    "e2ee_v2": (["--encrypt"], True, Tweaks(encrypt=True)),
    "v2_obfuscated": (
        ["--encrypt", "--e2ee", "v2", "--obfuscate-paths"],
        True,
        Tweaks(encrypt=True, use_path_obfuscation=True),
    ),
    "v1": (["--e2ee", "v1"], True, Tweaks(encrypt=True, e2ee_algorithm="")),
    "v1_dynamic": (
        ["--e2ee", "v1", "--dynamic-iterations"],
        True,
        Tweaks(encrypt=True, e2ee_algorithm="", use_dynamic_iteration_count=True),
    ),
    "compressed": (["--compress", "--no-encrypt"], False, Tweaks(enable_compression=True)),
    "case_sensitive": (
        ["--case-sensitive"],
        False,
        Tweaks(handle_filename_case_sensitive=True),
    ),
    "other_hash": (["--hash-alg", "sha1"], False, Tweaks(hash_alg="sha1")),
    "legacy_hash": (["--hash-alg", "legacy"], False, Tweaks(hash_alg="")),
    "other_sizes": (
        ["--chunk-size", "60", "--minimum-chunk-size", "40"],
        False,
        Tweaks(custom_chunk_size=60, minimum_chunk_size=40),
    ),
}

pytestmark = pytest.mark.usefixtures("no_keyring")


@pytest.fixture(autouse=True)
def secrets_in_the_environment(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUCH_PASSWORD", remote.password or "")
    monkeypatch.setenv("NOTES_PASSPHRASE", PASSPHRASE)


def as_bytes(files: Mapping[str, str | bytes]) -> dict[str, bytes]:
    return {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_database_of_any_kind_is_filled_and_read_without_any_config(
    cli: Cli, remote: Remote, make_vault: MakeVault, tmp_path: Path, home: Path, kind: str
) -> None:
    options, is_encrypted, tweaks = KINDS[kind]
    secret = ["--passphrase-env", "NOTES_PASSPHRASE"] if is_encrypted else []
    here = options_of(remote, make_vault(FILES))
    done = cli("livesync", "push", "--once", *here, *secret, *options)
    assert (done.code, done.out) == (0, "5 sent\n"), done.err
    assert "Pushed: Inbox/x.md (" in done.err
    assert not (home / "config.json").exists()
    there = tmp_path / "there"
    there.mkdir()
    done = cli("livesync", "pull", "--once", *options_of(remote, there), *secret)
    assert (done.code, done.out) == (0, "5 taken\n"), done.err
    assert files_below(there) == as_bytes(FILES)
    other = device_of(tmp_path / "device", remote, passphrase=PASSPHRASE if is_encrypted else None)
    # A device of today has per-file customization sync on, and refuses a database that has not.
    assert other.sync().sync.member.tweaks == replace(tweaks, use_plugin_sync_v2=True)
    assert other.files() == as_bytes(FILES)
    other.close()


def test_a_pull_fills_an_empty_folder_byte_for_byte(
    remote: Remote, make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = in_another_process(
        "livesync", "push", "--once", "--init", *options_of(remote, make_vault(FILES))
    )
    assert pushed.code == 0, pushed.err
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(tmp_path / "second"))
    there = tmp_path / "there"
    there.mkdir()
    pulled = in_another_process("livesync", "pull", "--once", *options_of(remote, there))
    assert (pulled.code, pulled.out) == (0, "5 taken\n"), pulled.err
    assert files_below(there) == as_bytes(FILES)
    assert not (tmp_path / "second" / "config.json").exists()


def test_a_login_in_the_address_works_and_is_never_shown(
    cli: Cli, remote: Remote, device: TestNode, make_vault: MakeVault
) -> None:
    url = remote.url.replace("://", f"://{remote.user}:a-password-f%C3%B6r-tests@")
    arguments = ("--url", url, "--db", remote.database, "--vault", str(make_vault({"a.md": "x"})))
    done = cli("livesync", "push", "--once", *arguments)
    assert (done.code, done.out) == (0, "1 sent\n"), done.err
    wrong = ("--url", url.replace("f%C3%B6r", "wrong"), *arguments[2:])
    done = cli("livesync", "push", "--once", *wrong, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "LIVESYNC_REFUSED")
    for text in (done.out, done.err):
        assert "a-password" not in text


def test_a_sync_prints_an_envelope_with_json(
    cli: Cli, remote: Remote, device: TestNode, make_vault: MakeVault
) -> None:
    device.write("there.md", "x\n")
    device.sync()
    vault = make_vault({"here.md": "y\n", "latin.md": b"gr\xfc\xdfe", "what:.md": "z\n"})
    done = cli("livesync", "run", "--once", "--json", *options_of(remote, vault))
    assert done.code == 1, done.err
    data = done.json["data"]
    assert (data["pulled"], data["pushed"], data["interrupted"]) == (1, 1, False)
    assert data["quarantined"] == ["latin.md"]
    assert list(data["left_out"]) == ["what:.md"]


def test_a_dry_run_prints_what_would_happen(
    cli: Cli, remote: Remote, device: TestNode, make_vault: MakeVault
) -> None:
    device.write("there.md", "x\n")
    device.sync()
    here = options_of(remote, make_vault({"here.md": "y\n"}))
    done = cli("livesync", "run", "--dry-run", *here)
    assert (done.code, done.out) == (0, "would send: here.md\nwould take: there.md\n")
    assert cli("livesync", "push", "--dry-run", *here).out == "would send: here.md\n"
    assert cli("livesync", "pull", "--dry-run", *here).out == "would take: there.md\n"
    data = cli("livesync", "run", "--dry-run", "--json", *here).json["data"]
    assert data["planned"][0] == {"action": "push", "path": "here.md"}
    device.sync()
    assert list(device.files()) == ["there.md"]
    cli("livesync", "run", "--once", *here)
    again = "Nothing to do: both sides are the same\n"
    assert cli("livesync", "run", "--dry-run", *here).out == again
    assert cli("livesync", "run", "--once", *here).out == again


def test_the_brake_stops_and_is_released_once(
    cli: Cli, remote: Remote, device: TestNode, make_vault: MakeVault
) -> None:
    vault = make_vault({f"{number}.md": "x\n" for number in range(30)})
    here = options_of(remote, vault)
    assert cli("livesync", "run", "--once", *here).code == 0
    for number in range(29):
        (vault / f"{number}.md").unlink()
    done = cli("livesync", "run", "--once", "--json", *here)
    assert (done.code, done.json["error"]["code"]) == (2, "LIVESYNC_BRAKE")
    done = cli("livesync", "run", "--once", "--allow-deletions", *here)
    assert (done.code, done.out) == (0, "29 deleted there\n")


def test_read_only_takes_and_sends_nothing(
    cli: Cli, remote: Remote, device: TestNode, make_vault: MakeVault
) -> None:
    device.write("there.md", "x\n")
    device.sync()
    here = options_of(remote, make_vault({"here.md": "y\n"}))
    assert cli("livesync", "run", "--once", "--read-only", *here).out == "1 taken\n"
    device.sync()
    assert list(device.files()) == ["there.md"]
    done = cli("livesync", "push", "--once", "--read-only", *here, "--json")
    assert done.json["error"]["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--url", "http://couch.invalid:5984", "--db", "d"], "LIVESYNC_REFUSED"),
        (["--url", "http://127.0.0.1:9", "--db", "d"], "LIVESYNC_UNREACHABLE"),
        (["--url", "http://127.0.0.1:9"], "CONFIG_INVALID"),
        (["--password-env", "NOT_SET"], "INVALID_ARGUMENT"),
        ([], "CONFIG_INVALID"),
    ],
)
def test_a_failure_has_its_code_and_a_next_step(
    cli: Cli, make_vault: MakeVault, options: list[str], code: str
) -> None:
    vault = make_vault({})
    done = cli("livesync", "pull", "--once", *options, "--vault", str(vault), "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert done.json["error"]["suggestion"]


def test_a_missing_folder_is_an_error_unless_a_pull_fills_it(
    cli: Cli, remote: Remote, tmp_path: Path
) -> None:
    nowhere = options_of(remote, tmp_path / "nowhere")
    done = cli("livesync", "push", "--once", *nowhere, "--init", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "NOT_FOUND")
    cli("livesync", "pull", "--once", *nowhere, "--json")
    assert (tmp_path / "nowhere").is_dir()


def test_json_is_for_a_sync_that_ends(cli: Cli, remote: Remote, make_vault: MakeVault) -> None:
    done = cli("livesync", "run", *options_of(remote, make_vault({})), "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


def test_run_follows_both_sides_until_interrupted_and_shows_no_secret(
    remote: Remote, device: TestNode, make_vault: MakeVault, home: Path
) -> None:
    vault = make_vault({"here.md": "y\n"})
    here = options_of(remote, vault)
    lines: list[str] = []
    with subprocess.Popen(
        [*COMMAND, "livesync", "run", *here],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()))
        reader.start()
        try:
            until(lambda: any("following changes" in line for line in lines))
            arguments = " ".join(psutil.Process(process.pid).cmdline())
            (vault / "Inbox").mkdir()
            (vault / "Inbox" / "x.md").write_text("edited\n")
            until(lambda: any("Pushed: Inbox/x.md (1 chunk)" in line for line in lines))
            device.write("there.md", "from there\n")
            device.sync()
            until(lambda: (vault / "there.md").exists())
            busy = in_another_process("livesync", "run", "--once", *here, "--json")
            assert (busy.code, busy.json["error"]["code"]) == (2, "BUSY")
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
            reader.join(PATIENCE_S)
    assert any("Pulled: there.md" in line for line in lines)
    assert all(
        line.startswith("[livesync] [INFO]") or "Stopping" in line for line in lines if line.strip()
    )
    for form in forms_of(remote.password or ""):
        assert form not in "".join(lines)
        assert form not in arguments
        for file in home.rglob("*"):
            if file.is_file():
                assert form.encode() not in file.read_bytes(), file


def test_a_long_first_sync_shows_its_progress(
    remote: Remote, device: TestNode, make_vault: MakeVault, tmp_path: Path
) -> None:
    vault = make_vault({f"{number}.md": f"note {number}\n" for number in range(300)})
    done = in_another_process("livesync", "push", "--once", *options_of(remote, vault))
    assert (done.code, done.out) == (0, "300 sent\n")
    assert "[livesync] 200 of 300 files" in done.err
    there = tmp_path / "there"
    there.mkdir()
    shown = on_terminal("livesync", "pull", "--once", *options_of(remote, there))
    assert (shown.code, "200/300" in shown.err) == (0, True), "no bar"
    assert "Pulled: 7.md" in shown.err
    assert shown.err.splitlines()[-1].endswith("300 taken")
    assert len(list(there.iterdir())) == 300


def test_the_log_level_is_a_setting(
    cli: Cli,
    remote: Remote,
    device: TestNode,
    make_vault: MakeVault,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    home.mkdir()
    (home / "config.json").write_text('{"livesync": {"logLevel": "warning"}}')
    here = options_of(remote, make_vault({"a.md": "x\n"}))
    done = cli("livesync", "push", "--once", *here)
    assert (done.code, done.err) == (0, "")
