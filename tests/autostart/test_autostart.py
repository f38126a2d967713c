"""The daemon at login: texts that survive any path, and entries that come and go whole.

The programs of the operating systems are stand-ins: scripts first on PATH that note what they are
asked and do what the real ones do to the disk.
"""

import os
import plistlib
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.waiting import PATIENCE_S

from obsidian_rag.autostart.entry import (
    Entry,
    Machine,
    Platform,
    daemon_config,
    entry_for,
    platform_of,
    unseen_settings,
)
from obsidian_rag.autostart.installation import install_entry, observe_entry, remove_entry
from obsidian_rag.autostart.launchers import Launch, plist_text, task_program, task_xml, unit_text
from obsidian_rag.errors import ConfigInvalid, InvalidArgument, ObsidianRagError, ReadOnly

AWKWARD = [
    "plain",
    "two words",
    " edges ",
    "100%h of %%",
    'say "hi"',
    "it's",
    "back\\slash\\n",
    "$HOME ${x} $$",
    "Notizbücher 笔记 🗒",
    "a=b;c&d<e>",
    "#not a comment",
]
NS = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}


def launch(python: str = "/opt/venv/bin/python", **environment: str) -> Launch:
    return Launch(python, environment, "/data/logs/autostart.log")


def lines_of(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def words_of(value: str, *, is_command: bool) -> list[str]:
    """What systemd makes of a value: see QUOTING in systemd.syntax(7)."""
    found = []
    for quoted, bare in re.findall(r'"((?:\\.|[^"\\])*)"|(\S+)', value):
        word = re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        word = word.replace("%%", "%")
        found.append(word.replace("$$", "$") if is_command else word)
    return found


def test_the_unit_restarts_after_failures_and_needs_no_namespace() -> None:
    text = unit_text(launch(OBSIDIAN_RAG_HOME="/data"))
    assert lines_of(text, "ExecStart") == ['"/opt/venv/bin/python" -P -m obsidian_rag serve']
    assert lines_of(text, "Environment") == ['"OBSIDIAN_RAG_HOME=/data"']
    facts = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    assert facts["Restart"] == "on-failure"
    assert facts["RestartSec"] == "5"
    assert facts["KillMode"] == "mixed"
    assert facts["NoNewPrivileges"] == "yes"
    assert facts["WantedBy"] == "default.target"
    assert not {"PrivateTmp", "ProtectSystem", "ProtectHome", "PrivateUsers"} & set(facts)
    assert lines_of(unit_text(launch()), "Environment") == []


@pytest.mark.parametrize("name", AWKWARD)
def test_a_unit_starts_a_python_in_any_folder_with_any_data_folder(
    tmp_path: Path, name: str
) -> None:
    python = script(tmp_path / name / "python", 'printf "%s\\n" "$0" "$@"')
    text = unit_text(launch(str(python), OBSIDIAN_RAG_HOME=f"/data/{name}"))
    (environment,) = lines_of(text, "Environment")
    assert words_of(environment, is_command=False) == [f"OBSIDIAN_RAG_HOME=/data/{name}"]
    (command,) = lines_of(text, "ExecStart")
    done = subprocess.run(
        words_of(command, is_command=True),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout.splitlines() == [str(python), "-P", "-m", "obsidian_rag", "serve"]


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path, name: str) -> None:
    python = script(tmp_path / name / "python", "true")
    text = unit_text(launch(str(python), OBSIDIAN_RAG_HOME=f"/data/{name}"))
    assert complaints(text, tmp_path) == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_would_find_a_unit_that_is_not_quoted(tmp_path: Path) -> None:
    python = script(tmp_path / "two words" / "python", "true")
    text = unit_text(launch(str(python))).replace('"', "")
    assert complaints(text, tmp_path)


def complaints(text: str, folder: Path) -> list[str]:
    """What systemd says about the unit; what it says about others is not our business."""
    unit = folder / "obsidian-rag.service"
    unit.write_text(text, encoding="utf-8")
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    lines = done.stderr.splitlines()
    return [line for line in lines if unit.name in line]


@pytest.mark.parametrize("name", AWKWARD)
def test_the_agent_of_macos_keeps_any_path(name: str) -> None:
    agent = plistlib.loads(
        plist_text(launch(f"/{name}/python", OBSIDIAN_RAG_HOME=f"/data/{name}")).encode()
    )
    assert agent["ProgramArguments"] == [f"/{name}/python", "-P", "-m", "obsidian_rag", "serve"]
    assert agent["EnvironmentVariables"] == {"OBSIDIAN_RAG_HOME": f"/data/{name}"}
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert agent["StandardErrorPath"] == "/data/logs/autostart.log"
    assert agent["Label"] == "io.github.obsidian-rag"


def task_words(launch: Launch) -> list[str]:
    """The words that the task of Windows runs, less those of the command."""
    text = task_xml(launch, "DESK\\Zoë")
    assert text.isascii()
    task = ElementTree.fromstring(text)
    assert task.findtext("t:Triggers/t:LogonTrigger/t:UserId", namespaces=NS) == "DESK\\Zoë"
    assert task.findtext("t:Settings/t:Hidden", namespaces=NS) == "true"
    assert task.findtext("t:Actions/t:Exec/t:Command", namespaces=NS) == sys.executable
    arguments = task.findtext("t:Actions/t:Exec/t:Arguments", namespaces=NS) or ""
    assert not re.search(r"%|\$\(", arguments), "the scheduler would replace it"
    *python, last = windows_words(arguments)
    assert (python, last) == (["-P", "-c", task_program(launch)], "serve")
    return python


@pytest.mark.parametrize("name", AWKWARD)
def test_the_task_of_windows_runs_the_daemon_with_its_environment_and_a_log(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, log = tmp_path / name, tmp_path / f"{name}.log"
    wanted = Launch(sys.executable, {"OBSIDIAN_RAG_HOME": str(data)}, str(log))
    *_, program = task_words(wanted)
    # What the program replaces in this process comes back with the end of the test.
    monkeypatch.setattr(sys, "argv", ["-c", "config", "path"])
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    with pytest.raises(SystemExit) as ended:
        exec(program, {})
    sys.stdout.close()
    assert ended.value.code == 0
    assert log.read_text(encoding="utf-8") == f"{data}/config.json\n"


def test_the_task_of_windows_is_a_command_that_python_understands(tmp_path: Path) -> None:
    name = " ".join(AWKWARD)
    data, log = tmp_path / name, tmp_path / f"{name}.log"
    words = task_words(Launch(sys.executable, {"OBSIDIAN_RAG_HOME": str(data)}, str(log)))
    done = subprocess.run(
        [sys.executable, *words, "config", "path"], capture_output=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert log.read_text(encoding="utf-8") == f"{data}/config.json\n"


def windows_words(line: str) -> list[str]:
    """What a Windows program makes of its command line, by the rules of the C runtime."""
    words, word, is_quoted = [], "", False
    for slashes, quote, blank, other in re.findall(r'(\\*)(")|([ \t])|(\\+|[^\\"\s]+)', line):
        word += other if not quote else "\\" * (len(slashes) // 2)
        if quote and len(slashes) % 2:
            word += '"'
        elif quote:
            is_quoted = not is_quoted
        elif blank and is_quoted:
            word += blank
        elif blank:
            words.append(word)
            word = ""
    return [*words, word]


@pytest.mark.parametrize("name", ["line\nbreak", "bell\a", "\udcff"])
def test_a_path_that_cannot_be_written_down_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument):
        launch(f"/{name}/python")
    with pytest.raises(InvalidArgument):
        launch(OBSIDIAN_RAG_HOME=f"/{name}")


def test_platforms_go_by_our_name_and_by_pythons() -> None:
    assert [platform_of(n) for n in ("linux", "darwin", "macos", "win32", "windows")] == [
        Platform.LINUX,
        Platform.MACOS,
        Platform.MACOS,
        Platform.WINDOWS,
        Platform.WINDOWS,
    ]
    with pytest.raises(InvalidArgument):
        platform_of("plan9")


def entry(platform: Platform = Platform.LINUX, **environ: str) -> Entry:
    return entry_for(Machine(platform, Path("/opt/venv/bin/python"), 501, environ))


def test_the_unit_lies_where_systemd_looks(tmp_path: Path) -> None:
    user = tmp_path / "user"
    assert entry().file == user / ".config/systemd/user/obsidian-rag.service"
    assert entry(XDG_CONFIG_HOME="/etc/me").file.parent == Path("/etc/me/systemd/user")
    # The specification of XDG says that a relative path is to be ignored.
    assert entry(XDG_CONFIG_HOME="me").file == entry().file


def test_the_entry_carries_where_our_files_are_and_nothing_else(home: Path) -> None:
    assert "Environment=" not in entry().text
    text = entry(OBSIDIAN_RAG_HOME="~/x", OBSIDIAN_RAG_WATCHER__ENABLED="false", PATH="/bin").text
    assert lines_of(text, "Environment") == [f'"OBSIDIAN_RAG_HOME={Path("~/x").expanduser()}"']
    both = entry(OBSIDIAN_RAG_HOME="/h", OBSIDIAN_RAG_CONFIG="/c.json").text
    assert len(lines_of(both, "Environment")) == 2


def test_settings_of_this_shell_do_not_count_for_the_daemon(home: Path, tmp_path: Path) -> None:
    shell = {"OBSIDIAN_RAG_HOME": str(home), "OBSIDIAN_RAG_VAULT_PATH": str(tmp_path / "vault")}
    assert unseen_settings(shell) == ["OBSIDIAN_RAG_VAULT_PATH"]
    with pytest.raises(ConfigInvalid):
        _ = daemon_config(shell).vault_root


def script(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


SYSTEMCTL = """
[ "$1" = --user ] || exit 9
echo "$*" >> {notes}
units=$HOME/.config/systemd/user
case "$2" in
  enable)
    mkdir -p $units/default.target.wants
    ln -sf $units/$4 $units/default.target.wants/$4; touch {folder}/active ;;
  disable) rm -f $units/default.target.wants/$4 {folder}/active ;;
  is-enabled)
    [ -h $units/default.target.wants/$3 ] && echo enabled && exit 0; echo disabled; exit 1 ;;
  is-active) [ -e {folder}/active ] && echo active && exit 0; echo inactive; exit 3 ;;
esac
"""
NO_BUS = """
echo "$*" >> {notes}
echo "Failed to connect to bus: No medium found" >&2
exit 1
"""


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Put a stand-in first on PATH; returns the file where it notes what it is asked."""

    def make(name: str, body: str) -> Path:
        folder = tmp_path / "programs"
        notes = folder / "notes"
        script(folder / name, body.format(notes=notes, folder=folder))
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return notes

    return make


def asked(notes: Path) -> list[str]:
    """What a stand-in was told to do; questions left out."""
    lines = notes.read_text(encoding="utf-8").splitlines()
    notes.unlink()
    return [line for line in lines if not re.search(r" is-|^print|/Query", line)]


STARTED = [
    "--user daemon-reload",
    "--user reset-failed obsidian-rag.service",
    "--user try-restart obsidian-rag.service",
    "--user enable --now obsidian-rag.service",
]


def test_installing_writes_the_unit_and_starts_it_and_uninstalling_leaves_nothing(
    pretend: Callable[[str, str], Path], tmp_path: Path
) -> None:
    notes = pretend("systemctl", SYSTEMCTL)
    unit = entry()
    assert observe_entry(unit).is_installed is False
    notes.unlink()
    install_entry(unit)
    assert asked(notes) == STARTED
    assert unit.file.read_text(encoding="utf-8") == unit.text
    assert stat.S_IMODE(unit.file.stat().st_mode) == 0o600
    state = observe_entry(unit)
    assert (state.is_installed, state.is_current) == (True, True)
    assert (state.is_enabled, state.is_running) == (True, True)
    assert asked(notes) == []
    assert remove_entry(unit) == []
    assert asked(notes) == [
        "--user disable --now obsidian-rag.service",
        "--user daemon-reload",
    ]
    assert [file for file in (tmp_path / "user").rglob("*") if not file.is_dir()] == []
    assert remove_entry(unit) is None
    assert asked(notes) == []


def test_installing_twice_is_like_once_and_replaces_an_older_entry(
    pretend: Callable[[str, str], Path],
) -> None:
    notes = pretend("systemctl", SYSTEMCTL)
    install_entry(entry(OBSIDIAN_RAG_HOME="/old"))
    assert observe_entry(entry()).is_current is False
    install_entry(entry())
    install_entry(entry())
    assert asked(notes) == STARTED * 3
    assert observe_entry(entry()).is_current is True
    assert [file.name for file in entry().file.parent.iterdir() if file.is_file()] == [
        "obsidian-rag.service"
    ]


def test_without_a_session_bus_the_file_is_written_and_the_user_is_told(
    pretend: Callable[[str, str], Path],
) -> None:
    notes = pretend("systemctl", NO_BUS)
    with pytest.raises(ObsidianRagError) as failed:
        install_entry(entry())
    assert asked(notes) == STARTED[:1]
    assert "is written, but" in failed.value.message
    assert "Failed to connect to bus" in failed.value.message
    assert "Log in as this user" in failed.value.suggestion
    state = observe_entry(entry())
    assert (state.is_installed, state.is_enabled, state.is_running) == (True, None, None)


def test_without_a_session_bus_uninstalling_still_leaves_nothing(
    pretend: Callable[[str, str], Path], tmp_path: Path
) -> None:
    pretend("systemctl", SYSTEMCTL)
    install_entry(entry())
    pretend("systemctl", NO_BUS)
    (complaint,) = remove_entry(entry()) or []
    assert "Failed to connect to bus" in complaint
    assert [file for file in (tmp_path / "user").rglob("*") if not file.is_dir()] == []


def test_a_system_without_systemd_is_told_so_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ObsidianRagError) as failed:
        install_entry(entry())
    assert "systemctl" in failed.value.message
    assert "obsidian-rag serve" in failed.value.suggestion
    assert not entry().file.parent.exists()
    assert remove_entry(entry()) is None


def test_a_file_that_somebody_else_wrote_is_never_touched(
    pretend: Callable[[str, str], Path],
) -> None:
    notes = pretend("systemctl", SYSTEMCTL)
    file = entry().file
    file.parent.mkdir(parents=True)
    file.write_text("[Service]\nExecStart=/bin/mine\n")
    for act in (install_entry, remove_entry):
        with pytest.raises(ReadOnly):
            act(entry())
    assert file.read_text() == "[Service]\nExecStart=/bin/mine\n"
    assert not notes.exists()


def test_a_folder_that_cannot_be_written_is_told(
    pretend: Callable[[str, str], Path], tmp_path: Path
) -> None:
    notes = pretend("systemctl", SYSTEMCTL)
    (tmp_path / "user").mkdir()
    (tmp_path / "user/.config").write_text("a file")
    with pytest.raises(ReadOnly):
        install_entry(entry())
    assert not notes.exists()


LAUNCHCTL = """
echo "$*" >> {notes}
case "$1" in
  bootout) [ -e {folder}/loaded ] || exit 3; rm {folder}/loaded; echo 12 > {folder}/busy ;;
  bootstrap)
    [ -e {folder}/busy ] && rm {folder}/busy && echo "Bootstrap failed: 5: Input/output error" >&2 \
      && exit 5
    touch {folder}/loaded ;;
  print) [ -e {folder}/loaded ] || exit 113; echo "state = running" ;;
esac
"""


def test_the_agent_of_macos_is_loaded_again_once_the_old_one_has_gone(
    pretend: Callable[[str, str], Path], home: Path, tmp_path: Path
) -> None:
    notes = pretend("launchctl", LAUNCHCTL)
    agent = entry(Platform.MACOS, OBSIDIAN_RAG_HOME=str(home))
    assert agent.file == tmp_path / "user/Library/LaunchAgents/io.github.obsidian-rag.plist"
    loading = [
        "bootout gui/501/io.github.obsidian-rag",
        "enable gui/501/io.github.obsidian-rag",
        f"bootstrap gui/501 {agent.file}",
    ]
    install_entry(agent)
    assert asked(notes) == loading
    # Launchd fails while the old daemon stops, and works afterwards.
    install_entry(agent)
    assert asked(notes) == [*loading, loading[-1]]
    assert (home / "logs").is_dir(), "launchd makes the log, but not its folder"
    state = observe_entry(agent)
    assert (state.is_enabled, state.is_running) == (True, True)
    (home / "logs/autostart.log").write_text("said")
    assert remove_entry(agent) == []
    assert observe_entry(agent).is_running is False
    assert not agent.file.exists()
    assert not (home / "logs/autostart.log").exists()


SCHTASKS = """
echo "$*" >> {notes}
case "$1" in
  /Create) [ -e "$5" ] && touch {folder}/task ;;
  /Delete) rm {folder}/task ;;
  *) [ -e {folder}/task ] ;;
esac
"""


def test_the_task_of_windows_is_made_from_the_file_and_deleted(
    pretend: Callable[[str, str], Path], home: Path
) -> None:
    notes = pretend("schtasks", SCHTASKS)
    task = entry(Platform.WINDOWS, OBSIDIAN_RAG_HOME=str(home), USERNAME="ann", USERDOMAIN="DESK")
    assert "<UserId>DESK\\ann</UserId>" in task.text
    install_entry(task)
    assert asked(notes)[1:] == [
        f"/Create /TN obsidian-rag /XML {home}/autostart.xml /F",
        "/Run /TN obsidian-rag",
    ]
    state = observe_entry(task)
    assert (state.is_enabled, state.is_running) == (True, None)
    assert remove_entry(task) == []
    assert asked(notes) == ["/End /TN obsidian-rag", "/Delete /TN obsidian-rag /F"]
    assert [file for file in home.rglob("*") if not file.is_dir()] == []
    assert observe_entry(task).is_enabled is False


def test_windows_uses_the_python_without_a_window_where_there_is_one(tmp_path: Path) -> None:
    def python_of(environ: Mapping[str, str]) -> str:
        machine = Machine(Platform.WINDOWS, tmp_path / "python.exe", 0, environ)
        return entry_for(machine).command[0]

    assert python_of({}) == str(tmp_path / "python.exe")
    (tmp_path / "pythonw.exe").touch()
    assert python_of({}) == str(tmp_path / "pythonw.exe")
