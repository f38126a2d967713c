"""`obsidian-rag mcp`: passes messages from stdin to the daemon, and its answers to stdout.

The daemon serves MCP at `/mcp`, so this process needs only sockets: it loads neither the MCP
library nor the engine, and stays small however long the client keeps it. It starts the daemon if
none runs, and once more if that one exits during an answer.

Threat: this process holds the daemon's token, which allows everything. It sends an agent's requests
only to `/mcp`, where each caller is an agent, with the limits that the user typed. Nothing from the
client becomes part of an address, or of a header unescaped.
"""

import base64
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, BinaryIO

from obsidian_rag import __version__
from obsidian_rag.data_folder import ENV_PREFIX, config_file, data_home, read_file
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.transports.light_client import daemon_facts, parse_answer, post
from obsidian_rag.transports.limits import CLIENT_HEADER, LIMITS_HEADER, Limits, parse_limits

_CONNECT_S = 3.0
_ANSWER_S = 120.0
# How long open requests may take after stdin has ended.
_DRAIN_TIMEOUT_S = 60.0
# The daemon answers eight at once; further requests of a client wait instead of being refused.
_MAX_CONCURRENT = 64
_PARSE_ERROR, _INVALID_REQUEST, _INTERNAL_ERROR = -32700, -32600, -32603
_CANCELLED = "notifications/cancelled"
# The newest protocol version repeats these facts of a request in headers.
_VERSION_OF_REQUEST = "io.modelcontextprotocol/protocolVersion"
_NAME_OF_REQUEST = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_VERSION = re.compile(r"[0-9A-Za-z.-]{1,40}")
_PLAIN = re.compile(r"[!-~]([ -~]*[!-~])?")
# Statuses of a daemon that is about to stop, or of another daemon at the same address.
_OTHER_DAEMON = {401, 421, 503}
_PLACES = {f"{ENV_PREFIX}HOME", f"{ENV_PREFIX}CONFIG"}


class NoDaemon(Exception):
    """No daemon runs, and none can be started; the message says why."""


def parse_flags(arguments: list[str]) -> Limits | None:
    """Parse the limits in the flags of `mcp`; None if there are other flags, such as `--help`."""
    named: dict[str, list[str]] = {"--vault": [], "--folder": []}
    is_read_only = False
    rest = iter(arguments)
    for word in rest:
        name, has_value, value = word.partition("=")
        if name in named:
            value = value if has_value else next(rest, "")
            if not value.isprintable() or value[:1] in ("", "-"):
                return None
            named[name].append(value)
        elif word == "--read-only":
            is_read_only = True
        else:
            return None
    vaults, folders = named["--vault"], named["--folder"]
    return Limits(tuple(vaults) or None, tuple(folders) or None, is_read_only)


def bridge(limits: Limits) -> int | None:
    """Serve one client until it disconnects; returns the exit code, or None without a daemon."""
    try:
        line = _DaemonLink()
        line.find()
        line.limit(limits)
    except NoDaemon as reason:
        if str(reason):
            sys.stderr.write(f"{reason}\nAnswering without a daemon.\n")
        return None
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    _Bridge(line).run(sys.stdin.buffer)
    return 0


class _DaemonLink:
    """How to reach the daemon that runs now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._facts: dict[str, Any] | None = None
        self._limits: str | None = None

    def find(self) -> dict[str, Any]:
        """The facts of the daemon, which is started if none runs.

        Raises:
            NoDaemon: none runs with our settings, and none can be started.
        """
        with self._lock:
            if self._facts is None:
                if not _has_vault():
                    raise NoDaemon  # the server without a daemon explains this to the client
                found = daemon_facts(data_home()) or _start_daemon()
                _check_settings(found)
                self._facts = found
            return self._facts

    def forget(self, facts: dict[str, Any]) -> None:
        """Drop a daemon that is gone; the next request finds or starts another one."""
        with self._lock:
            if self._facts is facts:
                self._facts = None

    def limit(self, limits: Limits) -> None:
        """Send these limits from now on, with vaults and folders as the daemon resolves them.

        Raises:
            NoDaemon: there are no such vaults or folders.
        """
        if limits.vaults or limits.folders:
            facts = self.find()
            asked = json.dumps(limits.fields).encode("ascii")
            try:
                # Sent as the owner, because the user typed these, not the agent.
                _, body = post(facts["port"], facts["token"], "/limits", asked)
                found = json.loads(body)["data"]
            except (OSError, ValueError) as error:
                raise NoDaemon(f"The daemon does not answer ({error}).") from None
            if found is None:
                raise NoDaemon  # the server without a daemon refuses them too, with the reason
            limits = parse_limits(found)
        self._limits = limits.header

    def headers(self, facts: dict[str, Any]) -> list[str]:
        """The headers that every request to this daemon has."""
        limited = [] if self._limits is None else [f"{LIMITS_HEADER}: {self._limits}"]
        return [
            f"Host: 127.0.0.1:{facts['port']}",
            f"Authorization: Bearer {facts['token']}",
            f"{CLIENT_HEADER}: {os.getpid()}",
            *limited,
        ]


def _has_vault() -> bool:
    if f"{ENV_PREFIX}VAULT_PATH" in os.environ:
        return True
    with contextlib.suppress(ObsidianRagError):
        return bool(read_file(config_file()).get("vault_path"))
    return False


def _start_daemon() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "obsidian_rag", "serve", "--detach", "--while-used"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        raise NoDaemon(done.stderr.decode(errors="replace").strip())
    found = daemon_facts(data_home())
    if found is None:
        raise NoDaemon("The daemon ended as soon as it had started.")
    return found


def _check_settings(facts: dict[str, Any]) -> None:
    """Refuse a daemon with other settings: its environment may differ from ours."""
    ours = {name for name in os.environ if name.startswith(ENV_PREFIX)} - _PLACES
    is_same = facts.get("version") == __version__ and facts.get("config") == str(config_file())
    if is_same and not facts.get("overrides") and not ours:
        return
    # These import as much as a command does, and are rarely needed.
    from obsidian_rag.config import load  # noqa: PLC0415
    from obsidian_rag.transports.daemon_client import usable_daemon  # noqa: PLC0415

    try:
        daemon, reason = usable_daemon(load())
    except ObsidianRagError as error:
        raise NoDaemon(error.message) from None
    if daemon is None:
        raise NoDaemon(reason)


class _Call:
    """A request from the client that has no answer yet."""

    def __init__(self, message: dict[str, Any], body: bytes) -> None:
        self.message = message
        self._body = body
        self.is_given_up = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def send(self, port: int, head: list[str]) -> tuple[int, bytes]:
        """Send it to the daemon; returns the status and body of the answer.

        Raises:
            OSError: the connection broke, or the client cancelled the request.
            ValueError: the answer is incomplete.
        """
        length = len(self._body)
        lines = [*head, *self._headers(), f"Content-Length: {length}", "Connection: close"]
        with socket.create_connection(("127.0.0.1", port), _CONNECT_S) as connection:
            with self._lock:
                self._socket = connection
                if self.is_given_up:
                    raise OSError("given up")
            connection.settimeout(_ANSWER_S)
            request = "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""])
            connection.sendall(request.encode("ascii") + self._body)
            return parse_answer(b"".join(iter(lambda: connection.recv(65536), b"")))

    def give_up(self) -> None:
        """Cancel it, because the client did."""
        with self._lock, contextlib.suppress(OSError):
            self.is_given_up = True
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def _headers(self) -> list[str]:
        own = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
        params = self.message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(_VERSION_OF_REQUEST) if isinstance(meta, dict) else None
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            return own
        own += [f"MCP-Protocol-Version: {version}"]
        own += [f"Mcp-Method: {_as_header(self.message['method'])}"]
        name = params.get(_NAME_OF_REQUEST.get(self.message["method"], ""))
        return [*own, f"Mcp-Name: {_as_header(name)}"] if isinstance(name, str) else own


class _Bridge:
    """One client on stdin and stdout; each request has its own thread."""

    def __init__(self, line: _DaemonLink) -> None:
        self._link = line
        self._places = threading.Semaphore(_MAX_CONCURRENT)
        self._printing = threading.Lock()
        self._changed = threading.Condition()
        self._open: dict[object, _Call] = {}

    def run(self, lines: BinaryIO) -> None:
        """Answer requests until the client closes stdin, and then finish the open ones."""
        for line in lines:
            if line.strip():
                self._take(line)
        with self._changed:
            self._changed.wait_for(lambda: not self._open, _DRAIN_TIMEOUT_S)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line, parse_constant=_refuse_constant)
            # JSON may contain characters that UTF-8 cannot encode ("\ud800"): they become "?".
            body = json.dumps(message, ensure_ascii=False).encode(errors="replace")
        except (ValueError, RecursionError):
            self._print(_failure(None, _PARSE_ERROR, "The message is not valid JSON."))
            return
        if not isinstance(message, dict) or not _is_message(message):
            given = message.get("id") if isinstance(message, dict) else None
            number = given if isinstance(given, int | str) else None
            text = "The message is not a JSON-RPC request."
            self._print(_failure(number, _INVALID_REQUEST, text))
        elif message.get("method") == _CANCELLED:
            self._give_up(message)
        elif "method" in message and isinstance(message.get("id"), int | str):
            call = _Call(message, body)
            with self._changed:
                self._open[message["id"]] = call
            threading.Thread(target=self._serve, args=(call,), daemon=True).start()
        # Other messages are dropped: they need no answer, and the daemon keeps no session.

    def _give_up(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        number = params.get("requestId") if isinstance(params, dict) else None
        with self._changed:
            call = self._open.pop(number, None) if isinstance(number, int | str) else None
            self._changed.notify_all()
        if call is not None:
            call.give_up()

    def _serve(self, call: _Call) -> None:
        try:
            with self._places:
                answer = self._answer_to(call)
        except Exception as error:  # noqa: BLE001  (the outer edge: every request gets an answer)
            text = f"Something unexpected went wrong ({type(error).__name__})."
            answer = _failure(call.message["id"], _INTERNAL_ERROR, text)
        if not call.is_given_up:
            self._print(answer)
        with self._changed:
            if self._open.get(call.message["id"]) is call:
                del self._open[call.message["id"]]
            self._changed.notify_all()

    def _answer_to(self, call: _Call) -> bytes:
        number = call.message["id"]
        status, body = 503, b""
        for _ in range(2):
            try:
                facts = self._link.find()
                status, body = call.send(facts["port"], self._link.headers(facts))
            except NoDaemon as reason:
                return _failure(number, _INTERNAL_ERROR, str(reason) or "No vault is configured.")
            except TimeoutError:
                return _failure(number, _INTERNAL_ERROR, "The daemon does not answer.")
            except (OSError, ValueError):
                status, body = 503, b""
            if call.is_given_up:
                return b""
            if status not in _OTHER_DAEMON:
                return _as_line(number, status, body)
            self._link.forget(facts)
        if body:
            return _as_line(number, status, body)
        text = "The daemon ended while it answered, and so did the one that was started after it."
        return _failure(number, _INTERNAL_ERROR, text)

    def _print(self, line: bytes) -> None:
        """Write a line to stdout; if the client has gone, stdin ends soon."""
        rest = line + b"\n"
        with self._printing, contextlib.suppress(OSError):
            while rest:
                rest = rest[os.write(1, rest) :]


def _is_message(message: dict[str, Any]) -> bool:
    """Whether it is a JSON-RPC request, notification or answer."""
    is_answer = "method" not in message and ("result" in message or "error" in message)
    return message.get("jsonrpc") == "2.0" and (is_answer or isinstance(message.get("method"), str))


def _as_line(number: int | str, status: int, body: bytes) -> bytes:
    """The daemon's answer to this request, as one line."""
    if status == 200:
        return body.replace(b"\n", b" ")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        answer = json.loads(body)
        error = answer["error"]
        if "jsonrpc" in answer:
            return _failure(number, error["code"], error["message"], error.get("data"))
        return _failure(number, _INTERNAL_ERROR, error["message"], error)
    return _failure(number, _INTERNAL_ERROR, f"The daemon answered with status {status}.")


def _failure(number: int | str | None, code: int, message: str, data: Any = None) -> bytes:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode("ascii")


def _as_header(text: str) -> str:
    """Encode a header value as MCP prescribes, so that it cannot start another header."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode('ascii')}?="


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
