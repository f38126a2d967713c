"""Who a process and its children talk to, seen from outside (strace) and from inside (a hook).

strace sees every system call, those of Rust and C too. The hook sees what Python does in every
Python process, on any machine, and also the names that it looks up. Both run at once where both
can. Whatever is not understood counts as an outside address.
"""

import ipaddress
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.waiting import PATIENCE_S

# io_uring could open sockets that no other system call shows.
_CALLS = ("socket", "connect", "bind", "sendto", "sendmsg", "sendmmsg", "io_uring_setup")
_FAMILIES = {"AF_UNIX", "AF_NETLINK", "AF_INET", "AF_INET6"}
_QUIET = {"AF_NETLINK", "AF_UNSPEC"}
_DNS_PORT = 53
_CALL = re.compile(r"^(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)$")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_FAMILY = re.compile(r"sa_family=(\w+)")
_PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
_HOST = re.compile(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"')
_SUN_PATH = re.compile(r'sun_path=@?"([^"]*)"')
# A name service behind a local socket would be DNS by another way.
_RESOLVER = re.compile(r"/systemd/resolve/|/avahi-daemon/")
# A proxy that nobody may use: whoever obeys the environment is seen.
PROXIES = {
    name: "http://192.0.2.99:3128"
    for plain in ("http_proxy", "https_proxy", "all_proxy")
    for name in (plain, plain.upper())
}

_HOOK = """
import json, os, sys

def write(kind, detail, pid=os.getpid):
    line = json.dumps([pid(), kind, detail], default=repr) + "\\n"
    os.write(log, line.encode())

def hook(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"):
        socket, address = arguments
        write(event, [socket.family.name, address])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        write(event, arguments[0])

log = os.open(os.environ["SOCKET_AUDIT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
write("start", sys.orig_argv)
sys.addaudithook(hook)
"""


@cache
def can_trace() -> bool:
    """Whether strace is here and may trace."""
    if shutil.which("strace") is None:
        return False
    trial = ["strace", "-f", "--seccomp-bpf", "-o", os.devnull, "true"]
    return subprocess.run(trial, capture_output=True, timeout=PATIENCE_S).returncode == 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen in one run."""

    calls: tuple[str, ...]
    events: tuple[tuple[str, object], ...]
    programs: tuple[str, ...]

    @property
    def outside(self) -> list[str]:
        """Everything that leaves the machine, or would ask a name server."""
        return [*filter(is_outside, self.calls), *map(repr, filter(_leads_outside, self.events))]

    @property
    def internet(self) -> list[str]:
        """Every attempt to reach anybody over TCP or UDP, on this machine too."""
        calls = [call for call in self.calls if re.match(r"(connect|send).*AF_INET", call)]
        heard = [
            event for event in self.events if event[0] != "socket.bind" and "AF_INET" in str(event)
        ]
        return [*calls, *map(repr, heard)]


class Audit:
    """Runs commands with both instruments; `seen` is complete when they have ended."""

    def __init__(self, folder: Path, *, is_tracing: bool | None = None) -> None:
        self._folder = folder
        self.is_tracing = can_trace() if is_tracing is None else is_tracing
        (folder / "hook").mkdir(parents=True)
        (folder / "hook/sitecustomize.py").write_text(_HOOK, encoding="utf-8")

    def command(self, *words: str) -> list[str]:
        """A command, watched from outside where that is possible."""
        if not self.is_tracing:
            return list(words)
        options = ["-ff", "--seccomp-bpf", "-qq", "-e", "signal=none", "-s", "64"]
        trace = ["-e", f"trace={','.join(_CALLS)}", "-o", str(self._folder / "calls")]
        return ["strace", *options, *trace, "--", *words]

    @property
    def environment(self) -> dict[str, str]:
        """The environment, watched from inside and with a proxy as bait."""
        paths = [str(self._folder / "hook"), *filter(None, [os.environ.get("PYTHONPATH")])]
        log = {"SOCKET_AUDIT_LOG": str(self._folder / "events")}
        return {**os.environ, **PROXIES, **log, "PYTHONPATH": os.pathsep.join(paths)}

    def run(
        self, words: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(
            self.command(*words),
            env={**self.environment, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def seen(self) -> Seen:
        """What there was so far."""
        traces = sorted(self._folder.glob("calls.*"))
        assert bool(traces) is self.is_tracing, "strace wrote nothing"
        calls = [
            line for file in traces for line in file.read_text("utf-8", "replace").splitlines()
        ]
        lines = (self._folder / "events").read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in lines]
        return Seen(
            tuple(calls),
            tuple((kind, detail) for _, kind, detail in events if kind != "start"),
            tuple(" ".join(detail) for _, kind, detail in events if kind == "start"),
        )


def is_outside(line: str) -> bool:
    """Whether a line of strace leaves the machine; a line that tells no address does not."""
    found = _CALL.match(line)
    if found is None or found[1] not in _CALLS:
        return False
    name, arguments = found.groups()
    if name == "io_uring_setup":
        return True
    if name == "socket":
        return arguments.split(",")[0] not in _FAMILIES or "SOCK_RAW" in arguments
    addresses = list(_addresses(arguments))
    if not addresses:
        return not _has_no_address(name, arguments)
    return any(_is_outside_address(address) for address in addresses)


def _addresses(arguments: str) -> Iterator[str]:
    """The part of each address, from its family to the next one's."""
    # What is sent may look like an address, so quoted text does not count.
    starts = [found.start() for found in _FAMILY.finditer(_blanked(arguments))]
    ends = [*starts, len(arguments)][1:]
    for start, end in zip(starts, ends, strict=True):
        yield arguments[start:end]


def _blanked(text: str) -> str:
    return _STRING.sub(lambda found: '"' + "_" * (len(found[0]) - 2) + '"', text)


def _has_no_address(name: str, arguments: str) -> bool:
    """Whether a call sends to whom its socket is connected already, which was seen before."""
    plain = _blanked(arguments)
    if name == "sendto":
        return re.search(r"NULL, 0(\)| <unfinished)", plain) is not None
    if name in ("sendmsg", "sendmmsg"):
        return "msg_name=NULL" in plain
    return False


def _is_outside_address(address: str) -> bool:
    family = _FAMILY.match(address)
    if family is None or family[1] not in _FAMILIES | _QUIET:
        return True
    if family[1] in _QUIET:
        return False
    if family[1] == "AF_UNIX":
        path = _SUN_PATH.search(address)
        return path is not None and _RESOLVER.search(path[1]) is not None
    host, port = _HOST.search(address), _PORT.search(address)
    if host is None or port is None:
        return True
    return int(port[1]) == _DNS_PORT or not _is_this_machine(host[1])


def _leads_outside(event: tuple[str, object]) -> bool:
    """Whether what Python did leaves the machine."""
    kind, detail = event
    if kind in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        return detail not in (None, "localhost", "") and not _is_this_machine(str(detail))
    assert isinstance(detail, list)
    family, address = detail
    if family in ("AF_UNIX", "AF_NETLINK") or address is None:
        return False
    if family not in _FAMILIES or not isinstance(address, list):
        return True
    return address[1] == _DNS_PORT or not _is_this_machine(str(address[0]))


def _is_this_machine(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
