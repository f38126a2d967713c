"""With local_only no socket leaves this machine, whatever is running; and the audit can fail."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.embed.embedding_doubles import fake_ollama, tiny_model
from tests.embed.provider_doubles import fake_gemini, fake_openai
from tests.fixture_types import Configure
from tests.folders import write_config
from tests.integration.living import Living, living
from tests.security.sockets import PROXIES, Audit, can_trace, is_outside
from tests.transports.command_line import COMMAND
from tests.waiting import PATIENCE_S

from obsidian_rag.config import data_home, load
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.transports.daemon_client import RunningDaemon, find_daemon

SAMPLE = Path(__file__).parents[2] / "samples" / "vault"
# The default embedder, because it is the one whose library knows how to download.
LOCAL: dict[str, object] = {
    "embedding.provider": "builtin",
    "security.local_only": True,
    "watcher.debounce_s": 0.0,
    "watcher.collect_s": 0.0,
    "server.probe_s": 0.2,
}
QUESTION = "how much do I owe Sreenivas?"


SERVERS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "ollama": fake_ollama,
    "openai": fake_openai,
    "gemini": fake_gemini,
}


def served_by(provider: str, url: str) -> dict[str, object]:
    model = "gemini-embedding-2" if provider == "gemini" else "tiny"
    return {
        "embedding.provider": provider,
        "embedding.model": model,
        "embedding.base_url": url,
    }


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return Audit(tmp_path / "audit")


@pytest.fixture
def vault(tmp_path: Path, configure: Configure) -> Path:
    root = tmp_path / "vault"
    shutil.copytree(SAMPLE, root)
    configure(root, LOCAL)
    return root


@pytest.fixture(scope="module")
def first_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the vault and a data folder that has its index, which are copied."""
    root = tmp_path_factory.mktemp("first")
    shutil.copytree(SAMPLE, root / "vault")
    write_config(root / "home", root / "vault", LOCAL)
    made = Engine(load(environ={"OBSIDIAN_RAG_HOME": str(root / "home")}))
    assert run_index(made, Mode.FULL).exit_code == 0
    made.close()
    return root


@pytest.fixture
def indexed(first_index: Path, home: Path) -> Path:
    """A vault that all tests of this file have, and its index, made before the audit."""
    shutil.copytree(first_index / "home", home)
    return first_index / "vault"


@pytest.fixture
def bread(indexed: Path) -> Iterator[Path]:
    """A note that a test writes, which the vault does not have for the others."""
    yield indexed / "Bread.md"
    (indexed / "Bread.md").unlink(missing_ok=True)


def words(*arguments: str) -> list[str]:
    return [*COMMAND, *arguments]


def test_index_and_search_open_no_socket_outside(vault: Path, audit: Audit) -> None:
    done = audit.run(words("index", "--json"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["data"]["embedded_chunks"] > 100
    found = audit.run(words("search", QUESTION, "--json"))
    assert found.returncode == 0, found.stderr
    hits = json.loads(found.stdout)["data"]["results"]
    assert hits[0]["source_file"] == "Finance/Debts.md"
    seen = audit.seen()
    assert seen.outside == []
    assert seen.internet == []
    assert [line for line in seen.programs if " index " in line]
    assert [line for line in seen.programs if " search " in line]


def test_serve_with_a_search_a_sync_and_an_edit_stays_on_this_machine(
    indexed: Path, audit: Audit, home: Path, bread: Path
) -> None:
    with serving(audit, home) as (process, door):
        daemon = Living(process, door)
        assert daemon.search(QUESTION)[0] == "Finance/Debts.md"
        daemon.index("sync")
        while not daemon.call("status")["data"]["is_watching"]:
            daemon.wait_for("health")
        bread.write_text("# Bread\nRye sourdough.\n")
        daemon.wait_for("changes")
        assert daemon.search("sourdough")[0] == "Bread.md"
        asked = audit.run(words("search", "sourdough", "--json"))
        assert json.loads(asked.stdout)["data"]["results"][0]["source_file"] == "Bread.md"
    seen = audit.seen()
    assert seen.outside == []
    assert [line for line in seen.programs if "engine.worker" in line], "the worker is not watched"
    # The instruments are not blind: a command asked the daemon, and that was seen by each.
    reached = [line for line in seen.internet if str(door.port) in line]
    assert any("socket.connect" in line for line in reached)
    assert any("connect(" in line for line in reached) is audit.is_tracing
    listening = [call for call in seen.calls if call.startswith("bind") and "AF_INET," in call]
    assert bool(listening) is audit.is_tracing
    assert all('inet_addr("127.0.0.1")' in call for call in listening)


@contextlib.contextmanager
def serving(audit: Audit, home: Path) -> Iterator[tuple["subprocess.Popen[str]", RunningDaemon]]:
    """A daemon under audit, which has ended when the block has."""
    process = subprocess.Popen(
        audit.command(*words("serve")),
        env=audit.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if re.search(r"http://127\.0\.0\.1:\d+", line):
            break
    drain = threading.Thread(target=process.stderr.read, daemon=True)
    drain.start()
    try:
        door = find_daemon(home)
        assert door is not None, said
        yield process, door
        # Not by a signal: that would go to strace.
        door.post("/shutdown")
        assert process.wait(PATIENCE_S) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        drain.join(PATIENCE_S)
        process.stderr.close()


@pytest.mark.parametrize("flags", [(), ("--no-daemon",)], ids=["by the daemon", "alone"])
def test_an_mcp_server_that_answers_a_search_stays_on_this_machine(
    indexed: Path, audit: Audit, flags: tuple[str, ...]
) -> None:
    answers = speak_mcp(audit, *flags)
    assert answers[1]["result"]["serverInfo"]["name"]
    envelope = answers[2]["result"]["structuredContent"]
    assert envelope["data"]["results"][0]["source_file"] == "Finance/Debts.md"
    seen = audit.seen()
    assert seen.outside == []
    # Alone it needs no connection at all.
    assert bool(seen.internet) is (flags == ())
    assert [line for line in seen.programs if " ".join(["", "mcp", *flags]) in line]
    assert bool([line for line in seen.programs if " --while-used" in line]) is (flags == ())


def speak_mcp(audit: Audit, *flags: str) -> dict[int, Any]:
    """Say hello and ask one question; the answers by their number."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "audit", "version": "1"},
    }
    call = {"name": "obsidian_rag_search", "arguments": {"query": QUESTION}}
    process = subprocess.Popen(
        audit.command(*words("mcp", *flags)),
        env=audit.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers: dict[int, Any] = {}
        for number, method, parameters in ((1, "initialize", hello), (2, "tools/call", call)):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                message = json.loads(line)
                if message.get("id") == number:
                    answers[number] = message
                    break
            if number == 1:
                ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                process.stdin.write(json.dumps(ready) + "\n")
        process.stdin.close()
        # strace stays until the last process that it watches has ended.
        if (daemon := find_daemon(data_home())) is not None:
            daemon.post("/shutdown")
        assert process.wait(PATIENCE_S) == 0
    return answers


@pytest.mark.parametrize("provider", list(SERVERS))
def test_an_embedder_on_this_machine_is_asked_directly_and_never_through_a_proxy(
    vault: Path, audit: Audit, configure: Configure, provider: str
) -> None:
    with SERVERS[provider]() as server:
        configure(vault, {**LOCAL, **served_by(provider, server.url)})
        done = audit.run(words("index", "--json"))
        assert done.returncode == 0, done.stderr
        assert server.requests
    seen = audit.seen()
    assert seen.outside == []
    assert seen.internet, "the embedder was asked, and nobody saw it"


OUTSIDE = "http://192.0.2.10:11434"


@pytest.mark.parametrize(
    "chosen",
    [
        {"embedding.provider": "ollama", "embedding.base_url": OUTSIDE},
        {
            "embedding.provider": "ollama",
            "embedding.base_url": "http://embeddings.example.com:11434",
        },
        {
            "embedding.provider": "openai",
            "embedding.base_url": "http://127.0.0.1.example.com:11434",
        },
        {"embedding.provider": "openai", "embedding.external_consent": True},
        {"embedding.provider": "gemini", "embedding.bulk_consent": "gemini"},
        {"embedding.provider": "same_as_model", "model.provider": "openai"},
    ],
    ids=lambda chosen: "-".join(str(value) for value in chosen.values()),
)
def test_an_embedder_outside_is_refused_before_any_socket_is_opened(
    indexed: Path, audit: Audit, configure: Configure, chosen: dict[str, object]
) -> None:
    configure(indexed, {**LOCAL, **chosen})
    for command in (("index",), ("search", QUESTION)):
        done = audit.run(words(*command, "--json"))
        error = json.loads(done.stdout)["error"]
        assert (done.returncode, error["code"]) == (2, "SECURITY_VIOLATION")
    seen = audit.seen()
    assert (seen.outside, seen.internet) == ([], [])


def test_a_daemon_with_an_embedder_outside_refuses_its_work_and_never_calls_there(
    indexed: Path, audit: Audit, configure: Configure, home: Path
) -> None:
    configure(indexed, {**LOCAL, "embedding.provider": "ollama", "embedding.base_url": OUTSIDE})
    with serving(audit, home) as (process, door):
        daemon = Living(process, door)
        assert daemon.wait_for("health")["code"] == "SECURITY_VIOLATION"
        job = daemon.call("index", mode="sync")["data"]["job_id"]
        failed = daemon.wait_for("job", id=job, status="failed")
        assert failed["error"]["code"] == "SECURITY_VIOLATION"
        assert daemon.call("search", query=QUESTION)["error"]["code"] == "SECURITY_VIOLATION"
    seen = audit.seen()
    assert (seen.outside, seen.internet) == ([], [])
    assert [line for line in seen.programs if "engine.worker" in line]


def test_an_mcp_server_with_an_embedder_outside_never_calls_there(
    indexed: Path, audit: Audit, configure: Configure
) -> None:
    configure(indexed, {**LOCAL, "embedding.provider": "ollama", "embedding.base_url": OUTSIDE})
    answer = speak_mcp(audit, "--no-daemon")[2]["result"]
    assert answer["isError"] is True
    assert answer["structuredContent"]["error"]["code"] == "SECURITY_VIOLATION"
    seen = audit.seen()
    assert (seen.outside, seen.internet) == ([], [])


def test_a_vector_store_outside_is_refused_before_any_socket_is_opened(
    vault: Path, audit: Audit, configure: Configure
) -> None:
    configure(vault, {**LOCAL, "vector_store.path": "s3://bucket/vectors"})
    for command in (("index", "--json"), ("search", QUESTION, "--json"), ("serve",), ("mcp",)):
        done = audit.run(words(*command))
        assert (done.returncode, "CONFIG_INVALID" in done.stderr + done.stdout) == (2, True)
    seen = audit.seen()
    assert (seen.outside, seen.internet) == ([], [])


CULPRITS = {
    "a TCP connection": "s = socket.socket(); s.setblocking(False); s.connect_ex(OUT)",
    "a TCP connection by IPv6": "s = socket.socket(socket.AF_INET6); s.setblocking(False);"
    " s.connect_ex(('2001:db8::1', 80))",
    "a datagram": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', OUT)",
    "a message": "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, OUT)",
    "a question to a name server": "socket.getaddrinfo('name.invalid', 80)",
    "a name server on this machine": "socket.socket(type=socket.SOCK_DGRAM)"
    ".connect(('127.0.0.1', 53))",
    "a door open to the network": "socket.socket().bind(('0.0.0.0', 0))",
    "a connection through the proxy": "import urllib.request as u;"
    " u.urlopen('http://127.0.0.1.example/', timeout=0.1)",
}


@pytest.mark.parametrize("is_tracing", [False, True], ids=["hook", "strace"])
@pytest.mark.parametrize("culprit", CULPRITS)
def test_the_audit_catches(tmp_path: Path, culprit: str, is_tracing: bool) -> None:
    if is_tracing and not can_trace():
        pytest.skip("strace is not here or may not trace; the hook is the only instrument")
    audit = Audit(tmp_path / "audit", is_tracing=is_tracing)
    guilty = f"import socket, contextlib\nOUT = ('192.0.2.1', 9)\n{ERRORS}{CULPRITS[culprit]}"
    # One process further down, because workers must not escape.
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    assert audit.run([sys.executable, "-c", parent, guilty]).returncode == 0
    seen = audit.seen()
    assert len(seen.programs) == 2
    flagged = [line for line in seen.outside if line.startswith("(") is not is_tracing]
    assert flagged, seen


ERRORS = "with contextlib.suppress(OSError):\n    "


@pytest.mark.parametrize(
    "line",
    [
        'connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("192.0.2.1")}, 16)'
        " = -1 EINPROGRESS (Operation now in progress)",
        '99 connect(3, {sa_family=AF_INET, sin_port=htons(1), sin_addr=inet_addr("10.0.0.1")}, 16'
        " <unfinished ...>",
        'connect(3, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16)'
        " = 0",
        "connect(3, {sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0),"
        ' inet_pton(AF_INET6, "2001:db8::1", &sin6_addr), sin6_scope_id=0}, 28) = 0',
        "connect(3, {sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0),"
        ' inet_pton(AF_INET6, "::ffff:192.0.2.1", &sin6_addr), sin6_scope_id=0}, 28) = 0',
        'sendto(4, "127.0.0.1", 1, 0, {sa_family=AF_INET, sin_port=htons(9),'
        ' sin_addr=inet_addr("192.0.2.1")}, 16) = 1',
        "sendmsg(4, {msg_name={sa_family=AF_INET, sin_port=htons(9),"
        ' sin_addr=inet_addr("192.0.2.1")}, msg_namelen=16, msg_iovlen=1}, 0) = 1',
        "sendmmsg(4, [{msg_hdr={msg_name={sa_family=AF_INET, sin_port=htons(9),"
        ' sin_addr=inet_addr("127.0.0.1")}}}, {msg_hdr={msg_name={sa_family=AF_INET,'
        ' sin_port=htons(9), sin_addr=inet_addr("192.0.2.1")}}}], 2, 0) = 2',
        'bind(3, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("0.0.0.0")}, 16) = 0',
        'connect(3, {sa_family=AF_UNIX, sun_path="/run/systemd/resolve/io.systemd.Resolve"}, 42)'
        " = 0",
        "connect(3, {sa_family=AF_VSOCK, svm_cid=0x2, svm_port=0x400}, 16) = 0",
        "connect(3, 0x7ffdf05855b0, 16) = -1 EFAULT (Bad address)",
        "socket(AF_PACKET, SOCK_DGRAM, htons(0 /* ETH_P_??? */)) = 3",
        "socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) = 3",
        "io_uring_setup(256, {flags=0}) = 5",
    ],
)
def test_a_line_of_strace_that_leads_outside_is_flagged(line: str) -> None:
    assert is_outside(line)


@pytest.mark.parametrize(
    "line",
    [
        'connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16)'
        " = 0",
        "bind(3, {sa_family=AF_INET6, sin6_port=htons(0), sin6_flowinfo=htonl(0),"
        ' inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}, 28) = 0',
        'connect(3, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT',
        "bind(3, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 0",
        'sendto(4, "{sa_family=AF_INET, inet_addr(\\"192.0.2.1\\")}", 1, 0, NULL, 0) = 1',
        'sendmsg(4, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="x", iov_len=1}]}, 0) = 1',
        "socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_IP) = 3",
        "+++ exited with 0 +++",
        "",
    ],
)
def test_a_line_of_strace_that_stays_here_is_not_flagged(line: str) -> None:
    assert not is_outside(line)


def test_every_audited_run_has_a_proxy_as_bait(audit: Audit) -> None:
    assert PROXIES.items() <= audit.environment.items()


# Whoever tells of each import of a library what the environment says at that moment.
IMPORT_HOOK = """
import os, sys
log = os.open(os.environ["IMPORT_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def hook(event, arguments):
    if event == "import" and arguments[0] == "onnxruntime":
        told = os.environ.get("ORT_DISABLE_TELEMETRY")
        os.write(log, f"{told} {' '.join(sys.orig_argv)}\\n".encode())

sys.addaudithook(hook)
"""


def test_telemetry_is_off_in_every_process_before_onnxruntime_is_imported(
    vault: Path,
    configure: Configure,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook/sitecustomize.py").write_text(IMPORT_HOOK)
    log = tmp_path / "imports"
    monkeypatch.setenv("IMPORT_LOG", str(log))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hook"))
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    configure(vault, {**LOCAL, **onnx_settings(tmp_path)})
    done = subprocess.run(words("index"), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    with living() as daemon:
        daemon.index("sync")
        daemon.call("search", query=QUESTION)
    told = [line.partition(" ") for line in log.read_text().splitlines()]
    assert {value for value, _, _ in told} == {"1"}
    programs = [command for _, _, command in told]
    for one in (" index", " serve", "engine.worker"):
        assert any(one in command for command in programs), (one, programs)


def onnx_settings(folder: Path) -> dict[str, object]:
    model = tiny_model(folder / "model")
    return {"embedding.provider": "onnx", "embedding.model": str(model)}


# onnxruntime 1.29 asked a name server after 25 s, and not at all where `CI` is set.
LISTENING_S = 40


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("provider", ["builtin", "onnx", "hash", *SERVERS])
def test_no_embedder_calls_anybody_while_a_daemon_lives(
    vault: Path,
    audit: Audit,
    configure: Configure,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
) -> None:
    if not audit.is_tracing:
        pytest.skip("strace is not here or may not trace, and only it sees what C code does")
    for name in ("CI", "ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
        monkeypatch.delenv(name, raising=False)
    with SERVERS.get(provider, fake_ollama)() as server:
        chosen: dict[str, object] = {"embedding.provider": provider}
        if provider == "onnx":
            chosen = onnx_settings(tmp_path)
        if provider in SERVERS:
            chosen = served_by(provider, server.url)
        configure(vault, {**LOCAL, **chosen})
        with serving(audit, home) as (process, door):
            daemon = Living(process, door)
            daemon.index()
            assert daemon.call("search", query=QUESTION)["error"] is None
            # Telemetry is sent after a while, so that is how long we have to listen.
            until = time.monotonic() + LISTENING_S
            while time.monotonic() < until:
                daemon.call("search", query=f"{QUESTION} {time.monotonic()}")
                time.sleep(1)
        assert bool(server.requests) is (provider in SERVERS)
    seen = audit.seen()
    assert seen.outside == []
    assert [line for line in seen.programs if "engine.worker" in line]
