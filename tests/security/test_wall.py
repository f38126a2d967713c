"""Every tool, every parameter, every door: for a limited caller there is nothing outside.

The calls are those of `test_privacy_enumeration`, which has an entry for each pair of a tool and a
parameter; what they name there as hidden, they name here as outside of the folders that the caller
is limited to. Each is made in twin vaults too, and answered the same in both.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.security.planted import (
    CALLED_OUTSIDE,
    INSIDE_FOLDERS,
    OUTSIDE,
    OUTSIDE_PATH,
    Twins,
    plant_outside,
    told,
    twins_of,
)
from tests.security.test_privacy_enumeration import (
    ADD,
    CANCEL,
    INDEX,
    LINK_LIST,
    LINKING,
    NAMES,
    READ,
    RECALL,
    RELATED,
    SEARCH,
    STATUS,
    STORE,
    SUGGEST,
    SYNC_STATUS,
    TABLE,
    Arguments,
    answer_of,
    comparable,
)
from tests.transports.http_client import Address, ending, start_daemon
from tests.transports.mcp_client import ALONE, talk

from obsidian_rag.engine import Tokens
from obsidian_rag.tools import OWNER, TOOLS, Caller, Scope, call
from obsidian_rag.transports.daemon_client import find_daemon
from obsidian_rag.transports.limits import LIMITS_HEADER, Limits

LIMITED = Caller(scope=Scope(folders=INSIDE_FOLDERS))
READER = Caller(is_read_only=True)
CALLS = [(tool, arguments) for (tool, _), calls in TABLE.items() for arguments in calls]
LIMITS = Limits(folders=INSIDE_FOLDERS)


def outside(arguments: Arguments) -> Arguments:
    """The same call, about what is outside instead of hidden."""
    text = json.dumps(arguments, ensure_ascii=False)
    for hidden, named in CALLED_OUTSIDE.items():
        text = text.replace(hidden, named)
    found: Arguments = json.loads(text)
    return found


@pytest.fixture(scope="module")
def walled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """The secrets lie outside of what the caller is limited to."""
    root = tmp_path_factory.mktemp("walled")
    with twins_of(root, lambda place, full: plant_outside(place, with_secrets=full)) as twins:
        yield twins


def secrets_in(walled: Twins, answer: object, request: object) -> list[str]:
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return told(text, request, (*OUTSIDE, str(walled.root).lower()))


@pytest.mark.parametrize("tool", TOOLS)
def test_no_answer_tells_or_depends_on_what_is_outside(walled: Twins, tool: str) -> None:
    for called, hidden in CALLS:
        if called != tool:
            continue
        for arguments in (outside(hidden), {**outside(hidden), "confirm_sensitive": True}):
            if "confirm_sensitive" in arguments and (tool, "confirm_sensitive") not in TABLE:
                continue
            envelope: Any = call(walled.full, tool, arguments, LIMITED)
            assert secrets_in(walled, envelope, arguments) == [], arguments
            if tool != STATUS:
                other = call(walled.bare, tool, arguments, LIMITED)
                assert comparable(envelope) == comparable(other), arguments


def test_the_secrets_are_there_for_who_is_not_limited(walled: Twins) -> None:
    """Else the test above would prove nothing."""

    def agent(tool: str, **arguments: object) -> str:
        return json.dumps(call(walled.full, tool, arguments)).lower()

    read = agent(READ, note=OUTSIDE_PATH)
    assert [word for word in OUTSIDE[:15] if word not in read] == []
    assert "zamboni" in agent(SEARCH, query="textooutso")
    assert "zamboni" in agent(SEARCH, query="peas prop:pin>=5511223")
    assert "valueooutso" in agent(RECALL, key="memkeyooutso")
    assert "zamboni" in agent(RELATED, note="Notes/Peas.md", max_results=200)
    assert str(walled.root).lower() in agent(STATUS)


def test_a_limited_caller_finds_what_is_inside(walled: Twins) -> None:
    def data(tool: str, **arguments: object) -> Any:
        return call(walled.full, tool, arguments, LIMITED)["data"]

    assert data(SEARCH, query="sow peas in march")["results"][0]["source_file"] == "Notes/Peas.md"
    assert data(READ, note="Peas")["source_file"] == "Notes/Peas.md"  # one of two, to others
    assert data(RELATED, note="Notes/Peas.md")["results"]
    assert [fact["key"] for fact in data(RECALL, query="spade")["facts"]] == ["spade"]
    assert data(STATUS)["total_docs"] == 7
    assert [link["name"] for link in data(LINK_LIST)["links"]] == ["vault"]


def test_a_field_of_the_status_is_told_only_if_it_was_decided_so(walled: Twins) -> None:
    """A new one is about all notes until somebody says otherwise here."""
    status: Any = call(walled.full, STATUS, {}, LIMITED)["data"]
    told = {name for name, value in status.items() if value not in (None, 0, [], ())}
    decided = {"plugin_health", "total_docs", "total_chunks", "last_sync", "ollama_status"}
    assert told - {"embedder", "notices", "is_watching"} <= decided


def test_a_caller_limited_to_a_linked_vault_knows_of_no_other(walled: Twins) -> None:
    linked = Caller(scope=Scope(vaults=("Zanzibar",)))

    def data(tool: str, **arguments: object) -> Any:
        return call(walled.full, tool, arguments, linked)["data"]

    found = {
        hit["vault"] for hit in data(SEARCH, query="peas by the wall", max_results=50)["results"]
    }
    assert found == {"Zanzibar"}
    assert "textolinko" in data(READ, note="Peas")["text"]
    related = data(RELATED, note="Notes/Peas.md", max_results=200)
    assert {one["vault"] for one in related["results"]} <= {"Zanzibar"}
    assert related["compared"] == 2
    assert data(RECALL, query="spade")["facts"] == []
    assert data(STATUS)["total_docs"] == 2
    assert [link["name"] for link in data(LINK_LIST)["links"]] == ["Zanzibar"]
    error: Any = call(walled.full, READ, {"note": "Notes/Peas.md", "vault": "vault"}, linked)
    assert error["error"]["message"] + error["error"]["suggestion"] == (
        "No vault 'vault'.The vaults are 'Zanzibar'."
    )


def test_a_scope_that_means_nothing_leaves_nothing(walled: Twins) -> None:
    nowhere = Caller(scope=Scope(folders=("Renamed",)))
    found: Any = call(walled.full, SEARCH, {"query": "peas"}, nowhere)["data"]
    assert found["results"] == []
    gone: Any = call(walled.full, SEARCH, {"query": "peas"}, Caller(scope=Scope(vaults=("gone",))))
    assert gone["error"]["code"] == "NOT_FOUND"
    none: Any = call(walled.full, STATUS, {}, Caller(scope=Scope(folders=())))["data"]
    assert none["total_docs"] == 0


@pytest.mark.parametrize("tool", [INDEX, CANCEL, SYNC_STATUS, STORE, *LINKING])
def test_what_is_about_the_whole_installation_is_refused(walled: Twins, tool: str) -> None:
    if tool in LINKING and TOOLS[tool].is_read_only:
        return  # they tell of the vaults inside
    arguments = next(arguments for called, arguments in CALLS if called == tool)
    error: Any = call(walled.full, tool, arguments, LIMITED)["error"]
    assert error["code"] == ("READ_ONLY" if not TOOLS[tool].is_read_only else "NOT_FOUND")


@pytest.mark.parametrize("tool", [name for name, one in TOOLS.items() if not one.is_read_only])
def test_a_reader_changes_nothing(walled: Twins, tool: str) -> None:
    before = {file: file.read_bytes() for file in (walled.root / "vault").rglob("*.md")}
    facts = call(walled.full, RECALL, {"query": "peas", "limit": 50}, OWNER)["data"]
    for called, arguments in CALLS:
        if called == tool:
            error: Any = call(walled.full, tool, outside(arguments), READER)["error"]
            assert error["code"] == "READ_ONLY"
    assert call(walled.full, RECALL, {"query": "peas", "limit": 50}, OWNER)["data"] == facts
    assert {file: file.read_bytes() for file in (walled.root / "vault").rglob("*.md")} == before


def test_a_link_out_of_the_scope_leads_nowhere(walled: Twins) -> None:
    link = walled.root / "vault" / "Notes" / "Away.md"
    link.symlink_to(walled.root / "vault" / OUTSIDE_PATH)
    try:
        error: Any = call(walled.full, READ, {"note": "Notes/Away.md"}, LIMITED)["error"]
        assert error["code"] == "NOT_FOUND"
        assert call(walled.full, READ, {"note": "Notes/Away.md"})["data"]
    finally:
        link.unlink()


def test_every_path_that_a_limited_caller_may_not_know_answers_the_same(walled: Twins) -> None:
    """Another answer for absolute paths would tell where the vault lies."""
    vault = walled.root / "vault"
    names = [
        str(vault / OUTSIDE_PATH),
        str(vault / "Nowhere.md"),
        str(vault / "Notes" / "Peas.md"),
        str(vault),
        str(walled.root / "home" / "config.json"),
        "/etc/passwd",
        "/nowhere/at/all.md",
        "../vault/Notes/Peas.md",
        "../../etc/passwd",
        ".obsidian/app.json",
        OUTSIDE_PATH,
        "Notes/Nowhere.md",
    ]
    for tool in (READ, RELATED, SUGGEST):
        answers = set()
        for name in names:
            envelope: Any = call(walled.full, tool, {"note": name}, LIMITED)
            answers.add(comparable(envelope).replace(json.dumps(name)[1:-1], "NAME"))
        assert len(answers) == 1, answers
        assert "NOT_FOUND" in answers.pop()


@pytest.fixture(scope="module")
def door(walled: Twins) -> Iterator[Address]:
    """The daemon of the installation with secrets."""
    home = walled.root / "home"
    with ending(start_daemon(environ={"OBSIDIAN_RAG_HOME": str(home)})) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = find_daemon(home)
        assert found is not None, said
        yield Address(found.port, found.token)


def sample() -> list[tuple[str, Arguments]]:
    """A call of each entry: over other doors the tools are the same."""
    return [(tool, outside(calls[0])) for (tool, _), calls in TABLE.items()]


def assert_walled(walled: Twins, door: Address, headers: dict[str, str | None]) -> None:
    for tool, arguments in sample():
        reply = door.ask("POST", f"/tools/{tool}", arguments, headers)
        assert secrets_in(walled, reply.body.decode(), arguments) == [], (tool, arguments)
    found = door.ask("POST", f"/tools/{READ}", {"note": OUTSIDE_PATH}, headers)
    assert (found.status, found.code) == (404, "NOT_FOUND")
    assert door.ask("POST", f"/tools/{READ}", {"note": "Notes/Peas.md"}, headers).status == 200
    assert door.get("/events", headers).status == 403


def test_a_token_is_worth_what_the_user_said(walled: Twins, door: Address) -> None:
    """Also at a daemon that runs already, and no header makes it worth more."""
    tokens = Tokens(walled.root / "home")
    scope = Scope(folders=INSIDE_FOLDERS)
    given = Address(door.port, tokens.create("limited", scope, is_read_only=True))
    assert_walled(walled, given, {"X-Obsidian-Rag-Caller": "owner"})
    assert_walled(walled, given, {LIMITS_HEADER: Limits(is_read_only=False).header})
    adding = {"note": "Notes/Peas.md", "target": "Notes/Beans.md", "add_missing_id": True}
    assert given.ask("POST", f"/tools/{ADD}", adding).code == "READ_ONLY"
    assert given.ask("POST", "/shutdown").status == 403
    assert given.ask("POST", "/command", {"arguments": ["read", OUTSIDE_PATH]}).status == 403
    tokens.revoke("limited")
    assert given.ask("POST", f"/tools/{STATUS}", {}).status == 401


def test_limits_travel_with_a_call_to_the_daemon(walled: Twins, door: Address) -> None:
    assert_walled(walled, door, {LIMITS_HEADER: LIMITS.header})
    owner = {LIMITS_HEADER: LIMITS.header, "X-Obsidian-Rag-Caller": "owner"}
    assert_walled(walled, door, owner)
    for wrong in ("", "x", "[]", "{}", '{"vaults": "a", "folders": null, "read_only": false}'):
        reply = door.ask("POST", f"/tools/{STATUS}", {}, {LIMITS_HEADER: wrong})
        assert reply.status == 400, wrong


@pytest.mark.parametrize("where", ["the daemon", "here"])
def test_an_mcp_server_is_limited_by_its_flags(
    walled: Twins,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    where: str,
) -> None:
    if where == "the daemon":
        request.getfixturevalue("door")
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(walled.root / "home"))
    uris = [f"obsidian-rag://note/{outside({'note': name})['note']}" for name in NAMES]

    async def session(client: Client) -> list[tuple[object, str]]:
        found: list[tuple[object, str]] = []
        for tool, arguments in sample():
            found.append((arguments, await answer_of(client.call_tool(tool, arguments))))
        for uri in (*uris, f"obsidian-rag://note/{OUTSIDE_PATH}"):
            found.append((uri, await answer_of(client.read_resource(uri))))
        found.append((None, await answer_of(client.list_resources())))
        return found

    flags = [part for name in INSIDE_FOLDERS for part in ("--folder", name)]
    flags += [ALONE] if where == "here" else []
    answers = talk(session, tmp_path / "stderr.txt", *flags)
    assert [(asked, secrets_in(walled, text, asked)) for asked, text in answers] == [
        (asked, []) for asked, _ in answers
    ]
    assert "Notes/Peas.md" in answers[-1][1]
    assert "NOT_FOUND" in answers[-2][1]
