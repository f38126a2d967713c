"""service: what it prints is what it does, and it says what the user must know."""

import os
import plistlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.waiting import PATIENCE_S

from obsidian_rag.config import load
from obsidian_rag.engine import announce, claim


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    made = make_vault({"a.md": "text"})
    configure(made, {})
    return made


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a stand-in for systemctl, first on PATH, was asked; it knows no unit."""
    program = tmp_path / "programs" / "systemctl"
    program.parent.mkdir()
    asked = program.parent / "notes"
    answer = 'case "$2" in is-*) echo inactive; exit 3;; esac'
    program.write_text(f'#!/bin/sh\necho "$*" >> {asked}\n{answer}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return asked


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    return tmp_path / "user/.config/systemd/user/obsidian-rag.service"


def test_printing_changes_nothing_and_shows_what_installing_does(
    cli: Cli, vault: Path, notes: Path, unit: Path
) -> None:
    printed = cli("service", "install", "--print")
    assert printed.code == 0
    assert not notes.exists()
    assert not unit.exists()
    head, _, commands = printed.out.partition("\n# run\n")
    first, _, text = head.partition("\n")
    assert first == f"# write {unit}"
    done = cli("service", "install")
    assert (done.code, unit.read_text()) == (0, text)
    ran = [line for line in notes.read_text().splitlines() if "is-" not in line]
    assert commands.splitlines() == [f"systemctl {line}" for line in ran]
    assert done.out.splitlines() == [
        f"entry   {unit}",
        f"starts  {sys.executable} -P -m obsidian_rag serve",
    ]
    assert "loginctl enable-linger" in done.err


def test_every_platform_can_be_printed_anywhere(cli: Cli, vault: Path, tmp_path: Path) -> None:
    agent = cli("service", "install", "--print", "--json", "--platform", "macos").json["data"]
    assert agent["file"].endswith("Library/LaunchAgents/io.github.obsidian-rag.plist")
    assert plistlib.loads(agent["text"].encode())["ProgramArguments"][0] == sys.executable
    assert agent["commands"][-1][:2] == ["launchctl", "bootstrap"]
    task = cli("service", "install", "--print", "--json", "--platform", "windows").json["data"]
    assert ElementTree.fromstring(task["text"]).tag.endswith("Task")
    assert task["commands"][1][:2] == ["schtasks", "/Create"]
    printed = cli("service", "install", "--print", "--platform", "windows")
    assert "\nschtasks /Create /TN obsidian-rag /XML " in printed.out
    assert not (tmp_path / "user").exists()


def test_uninstalling_is_printed_too(cli: Cli, unit: Path, notes: Path) -> None:
    printed = cli("service", "uninstall", "--print").out.splitlines()
    assert "systemctl --user disable --now obsidian-rag.service" in printed
    assert str(unit) in printed
    assert not notes.exists()
    data = cli("service", "uninstall", "--print", "--json").json["data"]
    assert data["commands"][0][2:] == ["disable", "--now", "obsidian-rag.service"]


def test_another_platform_can_only_be_printed(cli: Cli, vault: Path) -> None:
    for arguments in (("--platform", "macos"), ("--print", "--platform", "plan9")):
        done = cli("service", "install", "--json", *arguments)
        assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


def test_without_a_vault_nothing_is_installed(cli: Cli, unit: Path, notes: Path) -> None:
    done = cli("service", "install", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")
    assert not unit.exists()
    assert not notes.exists()


def test_a_vault_that_only_this_shell_knows_is_none(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_VAULT_PATH", str(tmp_path / "vault"))
    assert cli("service", "install", "--json").json["error"]["code"] == "CONFIG_INVALID"


def test_settings_that_only_this_shell_has_are_named(
    cli: Cli, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_WATCHER__DEBOUNCE_S", "1")
    assert "OBSIDIAN_RAG_WATCHER__DEBOUNCE_S" in cli("service", "install").err


@pytest.mark.skipif(os.geteuid() != 0, reason="this is not root")
def test_root_is_told_whose_session_it_is(cli: Cli, vault: Path) -> None:
    assert "root" in cli("service", "install").err


def test_a_failing_systemctl_is_an_error_with_a_next_step(
    cli: Cli, vault: Path, notes: Path, unit: Path
) -> None:
    program = notes.with_name("systemctl")
    program.write_text("#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n")
    done = cli("service", "install", "--json")
    assert (done.code, unit.exists()) == (2, True)
    assert "Failed to connect to bus" in done.json["error"]["message"]
    assert "service install" in done.json["error"]["suggestion"]
    assert cli("service", "status").out.splitlines()[1:3] == [
        "enabled  unknown",
        "running  unknown",
    ]
    gone = cli("service", "uninstall")
    assert (gone.code, unit.exists()) == (0, False)
    assert "obsidian-rag serve --stop" in gone.err


def test_status_tells_installed_enabled_and_running(cli: Cli, vault: Path, unit: Path) -> None:
    assert cli("service", "status").out.splitlines() == [
        "entry    not installed",
        "enabled  no",
        "running  no",
        "daemon   none",
    ]
    cli("service", "install")
    assert cli("service", "status", "--json").json["data"] == {
        "platform": "linux",
        "file": str(unit),
        "installed": True,
        "current": True,
        "enabled": False,
        "running": False,
        "daemon": None,
    }
    unit.write_text(unit.read_text().replace("Nice=5", "Nice=19"))
    assert "service install" in cli("service", "status").err
    assert cli("service", "uninstall", "--json").json["data"]["removed"] is True
    assert cli("service", "uninstall").out == "Nothing is installed\n"
    assert cli("service", "uninstall", "--json").json["data"]["removed"] is False


@pytest.fixture
def daemon_pid(vault: Path) -> Iterator[int]:
    """This process, as the daemon of the data folder."""
    config = load()
    with claim(config):
        yield announce(config, 4711).pid


def test_a_daemon_that_somebody_started_by_hand_is_seen(cli: Cli, daemon_pid: int) -> None:
    shown = cli("service", "status")
    assert f"http://127.0.0.1:4711 (process {daemon_pid})" in shown.out
    daemon = cli("service", "status", "--json").json["data"]["daemon"]
    assert daemon == {"url": "http://127.0.0.1:4711", "pid": daemon_pid}
    assert f"process {daemon_pid}" in cli("service", "install").err


def test_the_printed_command_starts_our_command_line(cli: Cli, vault: Path, tmp_path: Path) -> None:
    (tmp_path / "obsidian_rag").mkdir()
    (tmp_path / "obsidian_rag/__main__.py").write_text("raise SystemExit('shadowed')")
    command = cli("service", "install").out.splitlines()[1].split()[1:]
    done = subprocess.run(
        [*command, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0
    assert "Usage: obsidian-rag serve" in done.stdout
