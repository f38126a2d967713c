"""Attacks on the HTTP door: foreign pages, guessed tokens, paths that lead out of the vault.

Every text parameter of every tool is attacked, so that a new tool is covered the day it appears.
"""

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.transports.http_client import OpenDoor, Reply, installed, open_door

from obsidian_rag import config
from obsidian_rag.engine import Tokens
from obsidian_rag.tools import TOOLS, Scope
from obsidian_rag.transports.http.guard import RateLimit
from obsidian_rag.transports.http.web.sessions import PAGE_HEADER, SCREEN_HEADER
from obsidian_rag.transports.limits import LIMITS_HEADER, Limits
from obsidian_rag.transports.log import daemon_log

SECRET = "zanzibar-secret"
ASK = {"query": "garden", "max_results": 1}
SEARCH = "/tools/obsidian_rag_search"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    root = tmp_path_factory.mktemp("security")
    for place in (root, root / "home", root / "vault" / ".obsidian"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "secret.md").write_text(f"# Secret\n\n{SECRET}\n")
    # The attacks come faster than the usual limit allows.
    engine = installed(root, {"server.max_requests_per_s": 5000})
    (root / "vault" / "link.md").symlink_to(root / "secret.md")
    (root / "vault" / "door").symlink_to(root)
    with open_door(engine) as opened:
        yield opened


# Who asks


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer {token}x",
        "Bearer {short}",
        "Basic {token}",
        "{token}",
        "Token {token}",
        "Bearer {token} {token}",
        "Bearer {token},Bearer x",
        "Bearer \xff\xfe",
        "Bearer " + "x" * 10_000,
    ],
)
def test_without_the_token_there_is_no_answer(door: OpenDoor, given: str | None) -> None:
    header = given and given.format(token=door.token, short=door.token[:-1])
    for method, path in (
        ("POST", SEARCH),
        ("GET", "/tools"),
        ("GET", "/events"),
        ("POST", "/shutdown"),
        ("POST", "/command"),
        ("GET", "/nothing"),
        ("PATCH", "/tools"),
    ):
        reply = door.ask(method, path, ASK, {"Authorization": header})
        assert (reply.status, reply.code) == (401, "SECURITY_VIOLATION")
        assert reply.headers["www-authenticate"] == "Bearer"
    assert door.thread.is_alive()


def test_two_tokens_are_none(door: OpenDoor) -> None:
    twice = door.head("GET", "/tools", {"Connection": "close"}).replace(
        b"Authorization", b"Authorization: Bearer x\r\nAuthorization"
    )
    assert door.exchange(twice).startswith(b"HTTP/1.1 401")


def test_the_scheme_is_case_insensitive_but_the_token_is_not(door: OpenDoor) -> None:
    assert door.get("/tools", {"Authorization": f"bearer {door.token}"}).status == 200
    assert door.get("/tools", {"Authorization": f"Bearer {door.token.upper()}"}).status == 401


@pytest.mark.parametrize("path", ["/tools", "/healthz", "/openapi.json", "/events", "/nothing"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:{other}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "evil.example@127.0.0.1:{port}",
        "127.1:{port}",
        "0.0.0.0:{port}",
        "2130706433:{port}",
        "[::]:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "localhost.:{port}",
        "127.0.0.1:{port}, evil.example",
        "127.0.0.1:0{port}",
    ],
)
def test_another_host_is_refused_even_with_the_token(door: OpenDoor, path: str, host: str) -> None:
    named = host.format(port=door.port, other=door.port + 1)
    reply = door.get(path, {"Host": named})
    assert (reply.status, reply.code) == (421, "SECURITY_VIOLATION")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_the_names_of_this_machine_are_ours(door: OpenDoor, name: str) -> None:
    assert door.get("/tools", {"Host": f"{name}:{door.port}"}).status == 200


def test_no_host_and_two_hosts_are_refused(door: OpenDoor) -> None:
    host = f"Host: 127.0.0.1:{door.port}\r\n".encode()
    token = f"Authorization: Bearer {door.token}\r\n\r\n".encode()
    assert b" 421 " in door.exchange(b"GET /healthz HTTP/1.0\r\n" + token)[:20]
    assert b" 400 " in door.exchange(b"GET /healthz HTTP/1.1\r\n" + token)[:20]
    assert b" 400 " in door.exchange(b"GET /healthz HTTP/1.1\r\n" + host * 2 + token)[:20]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:{other}"},
        {"Origin": "http://localhost:{port}.evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "HTTP://127.0.0.1:{port}/"},
        {"Origin": "app://obsidian.md"},
        {"Origin": "moz-extension://d5a7"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": ""},
        {"Sec-Fetch-Site": "same-origin, cross-site"},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_request_that_another_page_caused_is_refused_before_its_token_is_looked_at(
    door: OpenDoor, headers: dict[str, str]
) -> None:
    given = {
        name: value.format(port=door.port, other=door.port + 1) for name, value in headers.items()
    }
    for token in (f"Bearer {door.token}", "Bearer wrong", None):
        reply = door.tool("search", ASK, {**given, "Authorization": token})
        assert (reply.status, reply.code) == (403, "SECURITY_VIOLATION")
        assert "www-authenticate" not in reply.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "http://localhost:{port}"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_our_own_page_may_ask(door: OpenDoor, headers: dict[str, str]) -> None:
    given = {name: value.format(port=door.port) for name, value in headers.items()}
    assert door.tool("search", ASK, given).status == 200


def test_a_preflight_gets_no_permission(door: OpenDoor) -> None:
    asked = {
        "Origin": "http://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
        "Access-Control-Request-Private-Network": "true",
        "Authorization": None,
    }
    reply = door.ask("OPTIONS", SEARCH, None, asked)
    assert reply.status == 403
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_a_forwarding_header_changes_nothing(door: OpenDoor) -> None:
    spoofed = {
        "X-Forwarded-Host": f"127.0.0.1:{door.port}",
        "X-Forwarded-For": "127.0.0.1",
        "Forwarded": f"host=127.0.0.1:{door.port}",
    }
    assert door.get("/tools", {**spoofed, "Host": "evil.example"}).status == 421


def test_a_request_with_two_lengths_is_refused(door: OpenDoor) -> None:
    two = door.head("POST", SEARCH, {"Content-Length": "4"}).replace(
        b"Content-Length: 4", b"Content-Length: 4\r\nContent-Length: 5"
    )
    assert b" 400 " in door.exchange(two + b"{}  ")[:20]


COMMAND = {"arguments": ["read", "Private/Diary.md"]}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Obsidian-Rag-Caller": "agent"},
        {"X-Obsidian-Rag-Caller": "owner", SCREEN_HEADER: "1"},
        {"X-Obsidian-Rag-Caller": "owner", LIMITS_HEADER: Limits(is_read_only=True).header},
    ],
    ids=["nobody", "an agent", "behind the screen", "limited"],
)
def test_only_commands_of_the_owner_are_run(door: OpenDoor, headers: dict[str, str | None]) -> None:
    reply = door.ask("POST", "/command", COMMAND, headers)
    assert (reply.status, reply.code) == (403, "SECURITY_VIOLATION")
    owner = door.ask("POST", "/command", COMMAND, {"X-Obsidian-Rag-Caller": "owner"})
    assert owner.status == 409, "this door runs no commands at all"


def test_no_page_and_no_agents_token_runs_a_command(door: OpenDoor) -> None:
    token = Tokens(door.engine.config.home).create("for commands", Scope(), is_read_only=False)
    given = {"Authorization": f"Bearer {token}", "X-Obsidian-Rag-Caller": "owner"}
    assert door.ask("POST", "/command", COMMAND, given).status == 403
    signed = door.app.sessions.sign_in(door.app.sessions.new_code())
    assert signed is not None
    page = {
        "Authorization": None,
        "Cookie": signed[0].partition(";")[0],
        PAGE_HEADER: signed[1],
        "Origin": door.url,
    }
    assert door.ask("POST", "/tools/obsidian_rag_status", {}, page).status == 200
    assert door.ask("POST", "/command", COMMAND, page).status == 403


# How much


def test_more_requests_than_allowed_are_told_to_wait(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    slow = {"server.max_requests_per_s": 0.01}
    engine = installed(tmp_path_factory.mktemp("pace"), slow, is_indexed=False)
    with open_door(engine) as door:
        assert door.get("/tools").status == 200
        reply = door.get("/tools")
        assert (reply.status, reply.code) == (429, "BUSY")
        assert 90 <= int(reply.headers["retry-after"]) <= 100


def test_who_has_no_token_cannot_use_up_the_turns_of_who_has(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    slow = {"server.max_requests_per_s": 0.01}
    engine = installed(tmp_path_factory.mktemp("turns"), slow, is_indexed=False)
    with open_door(engine) as door:
        for _ in range(5):
            assert door.get("/tools", {"Authorization": None}).status == 401
            assert door.get("/tools", {"Host": "evil.example"}).status == 421
        for _ in range(10):
            door.get("/healthz")
        assert door.get("/healthz").status == 429
        assert door.get("/tools").status == 200


def test_the_pace_allows_twice_the_rate_at_once_and_the_rate_for_ever() -> None:
    now = 100.0
    pace = RateLimit(5, lambda: now)
    assert [pace.take() for _ in range(10)] == [0] * 10
    assert pace.take() == pytest.approx(0.2)
    now += 0.2
    assert pace.take() == 0
    assert pace.take() > 0
    now += 1000
    assert [pace.take() == 0 for _ in range(11)] == [True] * 10 + [False]


# Where to


def attacks(root: Path) -> list[str]:
    """Ways to say "a file outside"."""
    return [
        "../secret.md",
        "../secret",
        "..",
        "../",
        "../home/secret.md",
        "../../../../../../../../etc/passwd",
        "Projects/../../secret.md",
        "./../secret.md",
        "....//secret.md",
        "..;/secret.md",
        "/etc/passwd",
        "//etc/passwd",
        str(root / "secret.md"),
        str(root / "vault" / ".." / "secret.md"),
        f"file://{root}/secret.md",
        "~/.ssh/id_rsa",
        "~root/.bashrc",
        "/proc/self/environ",
        "/dev/stdin",
        "link.md",
        "link",
        "door/secret.md",
        "door/home/config.json",
        ".obsidian/secret.md",
        ".OBSIDIAN/secret.md",
        "%2e%2e/secret.md",
        "%2e%2e%2fsecret.md",
        "..%2fsecret.md",
        "%252e%252e%252fsecret.md",
        "..%5csecret.md",
        "..\\secret.md",
        "..\\..\\Windows\\System32\\config\\SAM",
        "C:\\Windows\\System32\\drivers\\etc\\hosts",
        "C:/Windows/System32/drivers/etc/hosts",
        "C:secret.md",
        "\\\\server\\share\\secret.md",
        "//server/share/secret.md",
        "\\\\?\\C:\\secret.md",
        "\\\\.\\PhysicalDrive0",
        "CON",
        "con.md",
        "NUL",
        "nul.txt",
        "AUX.md",
        "COM1",
        "LPT9.md",
        "Projects/CON",
        "secret.md::$DATA",
        "．．/secret.md",
        "‥/secret.md",
        "..／secret.md",
        "../secret.md\0.png",
        "Plan.md\0",
        "../secret.md\n",
        "\u202e../secret.md",
        "a/" * 490 + "../secret.md",
        "x" * 990 + ".md",
        "*",
        "**/secret.md",
        "$(cat ../secret.md)",
        "' OR 1=1 --",
    ]


# Parameters that name a file or a folder; each must refuse every attack.
PATHS = {
    ("obsidian_rag_read", "note"),
    ("obsidian_rag_memory_store", "source"),
    ("obsidian_rag_search", "directory_filter"),
    ("obsidian_rag_related", "note"),
    ("obsidian_rag_suggest_relations", "note"),
    ("obsidian_rag_add_relation", "note"),
    ("obsidian_rag_add_relation", "target"),
}
# These name a folder anywhere on this machine, to be linked; `test_engine_linking` tries them.
LINK_PATHS = {
    ("obsidian_link_add", "root_path"),
    ("obsidian_link_add", "include"),
    ("obsidian_link_add", "exclude"),
}
GOOD: dict[str, dict[str, object]] = {
    "obsidian_rag_search": {"query": "garden", "max_results": 50, "confirm_sensitive": True},
    "obsidian_rag_read": {"note": "Projects/Plan.md", "confirm_sensitive": True},
    "obsidian_rag_memory_store": {"key": "k", "value": "v", "source": "Projects/Plan.md"},
    "obsidian_rag_index": {"mode": "sync"},
    "obsidian_rag_related": {},
    "obsidian_rag_suggest_relations": {"note": "Projects/Plan.md"},
    "obsidian_rag_add_relation": {"note": "Projects/Plan.md", "target": "Projects/Plan.md"},
}


def text_parameters() -> Iterator[tuple[str, str, bool]]:
    """(tool, parameter, whether it takes a list) for whatever takes text."""
    for name, tool in TOOLS.items():
        for parameter, schema in tool.params.model_json_schema().get("properties", {}).items():
            kinds = [schema, *schema.get("anyOf", ())]
            for kind in kinds:
                if kind.get("type") == "string":
                    yield name, parameter, False
                if kind.get("type") == "array" and kind["items"].get("type") == "string":
                    yield name, parameter, True


def test_every_parameter_that_speaks_of_a_path_is_known_to_this_test() -> None:
    told = {
        (name, parameter)
        for name, tool in TOOLS.items()
        for parameter, schema in tool.params.model_json_schema().get("properties", {}).items()
        if any(
            word in f"{parameter} {schema.get('description', '')}".lower()
            for word in ("path in", "folder", "directory", "file name", "_file")
        )
    }
    alike = {("obsidian_rag_add_relation", "target")}  # described by a word: as `note`
    assert told | alike == PATHS | LINK_PATHS
    assert {(name, parameter) for name, parameter, _ in text_parameters()} >= PATHS


@pytest.mark.parametrize("caller", ["agent", "owner"])
@pytest.mark.parametrize(("tool", "parameter", "is_list"), sorted(text_parameters()))
def test_no_parameter_leads_out_of_the_vault(
    door: OpenDoor, tool: str, parameter: str, is_list: bool, caller: str
) -> None:
    root = door.engine.config.home.parent
    for attack in attacks(root):
        arguments = {**GOOD.get(tool, {}), parameter: [attack] if is_list else attack}
        reply = door.ask("POST", f"/tools/{tool}", arguments, {"X-Obsidian-Rag-Caller": caller})
        assert leaks(reply, root) == [], attack
        assert reply.status < 500, (attack, reply.body)
        if (tool, parameter) in PATHS:
            assert reply.status in (400, 403, 404), (attack, reply.body)
            assert reply.code in ("SECURITY_VIOLATION", "INVALID_ARGUMENT", "NOT_FOUND")


@pytest.mark.parametrize("parameter", sorted(PATHS))
def test_what_clearly_leaves_the_vault_is_called_a_violation(
    door: OpenDoor, parameter: tuple[str, str]
) -> None:
    tool, name = parameter
    is_list = (tool, name, True) in set(text_parameters())
    for attack in ("../secret.md", "/etc/passwd", "C:\\Windows\\System32", "..\\x.md"):
        arguments = {**GOOD[tool], name: [attack] if is_list else attack}
        reply = door.ask("POST", f"/tools/{tool}", arguments)
        assert (reply.status, reply.code) == (403, "SECURITY_VIOLATION"), attack


def leaks(reply: Reply, root: Path) -> list[str]:
    """What should not be in an answer."""
    forbidden = (SECRET, "root:x:0", "PATH=", "vault_path", TOKEN_FIELD)
    return [text for text in forbidden if text.encode() in reply.body]


TOKEN_FIELD = '"token"'


@pytest.mark.parametrize(
    "path",
    [
        "/tools/../../secret.md",
        "/tools/..%2f..%2fsecret.md",
        "/../secret.md",
        "/%2e%2e/secret.md",
        "/tools/%2e%2e",
        "/tools/%00",
        "/tools/obsidian_rag_search%00",
        "/tools/C:%5CWindows%5CSystem32",
        "/tools/" + "x" * 8000,
        "/tools/%ff%fe",
        "/tools/%0d%0aX-Evil:%201",
        "http://evil.example/healthz",
        "//evil.example/healthz",
        "*",
    ],
)
def test_a_path_in_the_address_reaches_no_file(door: OpenDoor, path: str) -> None:
    for method in ("GET", "POST"):
        reply = door.ask(method, path)
        assert reply.status in (404, 405)
        assert leaks(reply, Path()) == []
        assert "x-evil" not in reply.headers


# What is left behind


def test_the_log_is_private_and_has_no_word_of_a_note_or_a_question(
    door: OpenDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(tmp_path / "logged"))
    loaded = config.load()
    with daemon_log(loaded.logs):
        door.tool("search", {"query": f"{SECRET} garden"})
        door.tool("search", f'{{"query": "{SECRET}"'.encode())
        door.tool("read", {"note": f"../{SECRET}"})
        door.ask("POST", f"/tools/{SECRET}")
        door.ask("POST", f"/{SECRET}")
        door.exchange(f"GET /{SECRET}\r\nAuthorization: {SECRET}\r\n\r\n".encode())
        try:
            try:
                raise ValueError(SECRET)
            except ValueError as error:
                raise OSError(28, SECRET) from error
        except OSError:
            logging.getLogger("obsidian_rag.test").exception("a tool failed")
    file = loaded.logs / "daemon.log"
    written = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(loaded.logs.stat().st_mode) == 0o700
    assert SECRET not in written
    assert door.token not in written
    for told in ("a tool failed", "ValueError", "OSError [errno 28]", "test_http_security.py"):
        assert told in written


def test_the_log_is_turned_over_and_stays_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(tmp_path / "logged"))
    loaded = config.load()
    with daemon_log(loaded.logs):
        for _ in range(5000):
            logging.getLogger("obsidian_rag.test").info("x" * 1000)
    files = sorted(loaded.logs.iterdir())
    assert [file.name for file in files] == [
        "daemon.log",
        "daemon.log.1",
        "daemon.log.2",
        "daemon.log.3",
    ]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert all(file.stat().st_size <= 1_000_000 for file in files)


def test_the_open_documents_hold_nothing_private(door: OpenDoor) -> None:
    for path in ("/healthz", "/openapi.json"):
        body = door.get(path, {"Authorization": None}).body.decode()
        for private in (door.token, str(door.engine.config.home.parent), "Projects", "Debts"):
            assert private not in body
