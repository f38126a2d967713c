"""The file contents with which each operating system starts the daemon at login. Pure.

A path may contain spaces, quotes, `%`, `$`, backslashes or any letter; each format has its own
quoting. What no format can express (control characters, broken Unicode) is refused.
"""

import plistlib
import subprocess
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from obsidian_rag.errors import InvalidArgument

UNIT = "obsidian-rag.service"
LABEL = "io.github.obsidian-rag"
TASK = "obsidian-rag"
MARK = "Written by `obsidian-rag service install`"

_ARGUMENTS = ("-P", "-m", "obsidian_rag", "serve")  # -P: never a module of the current folder
_ABOUT = "obsidian-rag: keeps your notes searchable"
_NICE = 5
# Longer than a stopping daemon waits for its job, so that it is not killed in the middle.
_STOP_S = 90
_NOT_A_PROGRAM = frozenset("\\\"'$")
_TASK_SCHEMA = "http://schemas.microsoft.com/windows/2004/02/mit/task"


@dataclass(frozen=True, slots=True)
class Launch:
    """How the daemon is started: Python, environment and log file."""

    python: str
    environment: Mapping[str, str]
    log: str

    def __post_init__(self) -> None:
        """Refuse text that no format can express.

        Raises:
            InvalidArgument: a path has control characters or is not Unicode.
        """
        for text in (self.python, self.log, *self.environment.values()):
            if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
                raise InvalidArgument(
                    f"The path {text!r} has characters that cannot be written into the entry.",
                    "Rename the folder, then run the command again.",
                )

    @property
    def command(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return (self.python, *_ARGUMENTS)


# Only what works without a mount namespace: in a user's session those need unprivileged user
# namespaces, which Ubuntu and hardened kernels refuse, and then the unit fails or, in older
# versions, runs unprotected. Mixed: the worker is stopped by the daemon, after its job. OOM: the
# daemon outlives its worker.
_UNIT_TEXT = """\
# {mark}; `obsidian-rag service uninstall` removes it.
# Your own changes belong into `systemctl --user edit {unit}`.
[Unit]
Description={about}
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart={command}
{environment}Restart=on-failure
RestartSec=5
KillMode=mixed
TimeoutStopSec={stop_s}
OOMPolicy=continue
Nice={nice}
NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
"""


def unit_text(launch: Launch) -> str:
    """The systemd unit of the user's session."""
    words = [_quote_unit_item(launch.python)]
    if _NOT_A_PROGRAM & set(launch.python):
        # systemd refuses these characters in a program path, but not in an argument.
        script = _quote_unit_argument('exec "$0" "$@"')
        words = ["/bin/sh", "-c", script, _quote_unit_argument(launch.python)]
    variables = (f"{name}={value}" for name, value in launch.environment.items())
    return _UNIT_TEXT.format(
        mark=MARK,
        unit=UNIT,
        about=_ABOUT,
        command=" ".join((*words, *_ARGUMENTS)),
        environment="".join(f"Environment={_quote_unit_item(one)}\n" for one in variables),
        stop_s=_STOP_S,
        nice=_NICE,
    )


def _quote_unit_argument(text: str) -> str:
    """One argument of a command, in which systemd also expands variables."""
    return _quote_unit_item(text.replace("$", "$$"))


def _quote_unit_item(text: str) -> str:
    """One value, in which systemd expands escapes and specifiers such as %h."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def plist_text(launch: Launch) -> str:
    """The launchd agent."""
    agent = {
        "Label": LABEL,
        "ProgramArguments": list(launch.command),
        "EnvironmentVariables": dict(launch.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": _STOP_S,
        "Nice": _NICE,
        "StandardOutPath": launch.log,
        "StandardErrorPath": launch.log,
    }
    head, start, rest = plistlib.dumps(agent, sort_keys=False).decode().partition("<plist")
    return f"{head}<!-- {MARK} -->\n{start}{rest}"


def task_xml(launch: Launch, user: str) -> str:
    """The task for the Windows Task Scheduler.

    ASCII only and without an encoding: `schtasks` reads other files in a code page of its choice.
    """
    task = ElementTree.Element("Task", {"version": "1.3", "xmlns": _TASK_SCHEMA})
    _add_element(task, "RegistrationInfo", {"Description": f"{_ABOUT}. {MARK}."})
    trigger = {"Enabled": "true", "UserId": user}
    _add_element(_add_element(task, "Triggers", {}), "LogonTrigger", trigger)
    who = {"UserId": user, "LogonType": "InteractiveToken", "RunLevel": "LeastPrivilege"}
    _add_element(_add_element(task, "Principals", {}), "Principal", who).set("id", "Author")
    settings = _add_element(task, "Settings", _TASK_SETTINGS)
    _add_element(settings, "RestartOnFailure", {"Interval": "PT1M", "Count": "5"})
    actions = _add_element(task, "Actions", {})
    actions.set("Context", "Author")
    arguments = subprocess.list2cmdline(["-P", "-c", task_program(launch), "serve"])
    _add_element(actions, "Exec", {"Command": launch.python, "Arguments": arguments})
    ElementTree.indent(task)
    return f'<?xml version="1.0"?>\n{ElementTree.tostring(task).decode("ascii")}\n'


_TASK_SETTINGS = {
    "Hidden": "true",
    "MultipleInstancesPolicy": "IgnoreNew",
    "DisallowStartIfOnBatteries": "false",
    "StopIfGoingOnBatteries": "false",
    "StartWhenAvailable": "true",
    "ExecutionTimeLimit": "PT0S",
    "Priority": "6",
}


def task_program(launch: Launch) -> str:
    """The Python code of the Windows task, which has neither environment variables nor output."""
    variables = ", ".join(
        f"{_python_literal(name)}: {_python_literal(value)}"
        for name, value in launch.environment.items()
    )
    return "; ".join(
        (
            "import os, runpy, sys",
            f"os.environ.update({{{variables}}})",
            f"sys.stdout = sys.stderr = open({_python_literal(launch.log)}, 'a', 1, 'utf-8')",
            "runpy.run_module('obsidian_rag', run_name='__main__', alter_sys=True)",
        )
    )


def _python_literal(text: str) -> str:
    """A Python string literal without % and $: the scheduler expands %NAME% and $(Arg0)."""
    return ascii(text).replace("%", r"\x25").replace("$", r"\x24")


def _add_element(
    parent: ElementTree.Element, name: str, leaves: Mapping[str, str]
) -> ElementTree.Element:
    branch = ElementTree.SubElement(parent, name)
    for leaf, text in leaves.items():
        ElementTree.SubElement(branch, leaf).text = text
    return branch
