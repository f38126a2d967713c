"""Every tool, every parameter, every door: no answer to an agent tells what was planted.

Each pair of a tool and a parameter needs an entry in `TABLE`: who adds one decides here how an
attacker would use it. Every call is made twice, with the notes that an agent may not know of and in
a twin vault without them. But for a private note's own path, the answers must be the same.
"""

import json
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from starlette.responses import Response
from tests.security.planted import (
    FOLDERS,
    HIDDEN,
    NEVER,
    NEVER_PATH,
    OPEN,
    PRIVATE,
    PRIVATE_PATH,
    SECRETS,
    WITHHELD,
    Twins,
    plant,
    plant_changed,
    told,
    twins_of,
)
from tests.transports.http_client import Address, ending, start_daemon
from tests.transports.mcp_client import ALONE, talk

from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.tools import OWNER, SCREENED, TOOLS, call, listed_notes
from obsidian_rag.transports.daemon_client import find_daemon
from obsidian_rag.transports.http.web.note import read_note
from obsidian_rag.transports.http.web.routes import CHANGES, READS

SEARCH, READ, RELATED = "obsidian_rag_search", "obsidian_rag_read", "obsidian_rag_related"
SUGGEST, ADD = "obsidian_rag_suggest_relations", "obsidian_rag_add_relation"
STORE, RECALL = "obsidian_rag_memory_store", "obsidian_rag_memory_recall"
STATUS, INDEX, CANCEL = "obsidian_rag_status", "obsidian_rag_index", "obsidian_rag_cancel"
SYNC_STATUS = "obsidian_sync_status"
LINK_ADD, LINK_LIST = "obsidian_link_add", "obsidian_link_list"
LINK_REMOVE, LINK_MODE = "obsidian_link_remove", "obsidian_link_set_mode"
SYNC_NOW, LINK_STATUS = "obsidian_sync_now", "obsidian_link_sync_status"
LINKING = (LINK_ADD, LINK_LIST, LINK_REMOVE, LINK_MODE, SYNC_NOW, LINK_STATUS)
# What tells of the whole installation differs between twins by counts and times.
WHOLE = (STATUS, INDEX, CANCEL, SYNC_STATUS, *LINKING)
Arguments = dict[str, object]
ASK: Arguments = {"query": "peas and beans by the wall", "max_results": 50}
# The vault there is, and one that only `test_wall` has.
VAULTS = ["vault", "Zanzibar"]
# Names of files, by path, by name, by title and by alias; some of them exist.
NAMES = [
    NEVER_PATH,
    "Attic/Beans.md",
    "Wolframit",
    "titleonevero",
    "aliasonevero",
    "Qorvexa",
    "titleoprivo",
    "aliasoprivo",
    "Notes/Garden.md",
    "Notes/Ledger.md",
    "Notes/Props.md",
    "Notes/Odd.md",
    "Boards/Map.canvas",
    "Peas",
    "Beans",
]


def each(name: str, values: object, **others: object) -> list[Arguments]:
    """One call per value of a parameter."""
    assert isinstance(values, (list, tuple))
    return [{**others, name: value} for value in values]


GARDEN: Arguments = {"note": "Notes/Garden.md"}
TABLE: dict[tuple[str, str | None], list[Arguments]] = {
    (SEARCH, "query"): [
        ASK,
        *each("query", SECRETS, max_results=50),
        *each("query", [f'"{word}"' for word in (*PRIVATE[:6], *NEVER[:6])]),
        *each("query", [f"peas -{word}" for word in ("textoprivo", "textonevero", "textowitho")]),
        *each("query", ["tag:tagoprivo", "tag:inlineoprivo peas", "tag:tagonevero", "tag:green"]),
        *each("query", ["path:cellar peas", "path:attic peas", "path:qorvexa", "path:notes peas"]),
        *each("query", ["prop:pin>=1", "prop:keyoprivo=valueoprivo", "prop:keyonevero>0 peas"]),
        *each("query", ["after:2031 before:2032 peas", "after:2032-08 peas", "peas in july 2031"]),
        *each("query", [f"vault:{name} peas" for name in VAULTS]),
        *each("query", ["textopriva", "tetxonevero", "peas textopriv", "Headingoprivo Section"]),
    ],
    (SEARCH, "max_results"): each("max_results", [1, 50], query="peas textoprivo textonevero"),
    (SEARCH, "directory_filter"): [
        *({**ASK, "directory_filter": [folder]} for folder in (*FOLDERS, "Notes", "Nowhere")),
        {**ASK, "directory_filter": ["Notes", "Cellar"]},
    ],
    (SEARCH, "vaults"): each("vaults", [[name] for name in VAULTS], **ASK),
    (SEARCH, "date_range"): each(
        "date_range",
        [{"from": "2031-07-09", "to": "2031-07-09"}, {"from": "2031-01-01"}, {"to": "2033-01-01"}],
        query="peas",
    ),
    (SEARCH, "tags"): each("tags", [["tagoprivo"], ["inlineonevero"], ["green"]], query="peas"),
    (SEARCH, "properties"): each(
        "properties",
        [["pin>=4711987"], ["keyoprivo=valueoprivo"], ["debt=propowitho"], ["propkeyowitho>=70"]],
        query="peas",
    ),
    (SEARCH, "group_by_note"): [{**ASK, "group_by_note": True}],
    (SEARCH, "suggest_dates"): each("suggest_dates", [True, False], query="peas in july 2031"),
    (SEARCH, "confirm_sensitive"): [{**ASK, "confirm_sensitive": False}],
    (READ, "note"): each("note", [*NAMES, PRIVATE_PATH, *SECRETS]),
    (READ, "vault"): each("vault", VAULTS, note="Notes/Peas.md"),
    (READ, "heading"): [
        *each("heading", ["headingoprivo", "sectionoprivo", "Winter"], note=PRIVATE_PATH),
        *each("heading", ["headingonevero", "Winter"], note=NEVER_PATH),
        *each("heading", ["Winter", "Money headowitho", "Beans", "Garden"], **GARDEN),
        {"note": "Notes/Ledger.md", "heading": "Peas"},
        {"note": "Notes/Props.md", "heading": "Props"},
    ],
    (READ, "start_line"): [
        *each("start_line", list(range(1, 20)), **GARDEN),
        *each("start_line", [1, 900], note=PRIVATE_PATH),
        *each("start_line", [1, 900], note=NEVER_PATH),
    ],
    (READ, "end_line"): [
        *({**GARDEN, "start_line": line, "end_line": line} for line in range(1, 20)),
        *({"note": "Notes/Props.md", "start_line": n, "end_line": n} for n in range(1, 9)),
        *({"note": "Notes/Odd.md", "start_line": n, "end_line": n} for n in range(1, 8)),
        {"note": "Boards/Map.canvas", "end_line": 1},
    ],
    (READ, "max_chars"): [
        {"note": "Notes/Ledger.md", "max_chars": 100},
        {"note": "Notes/Garden.md", "max_chars": 100},
        {"note": PRIVATE_PATH, "max_chars": 100},
    ],
    (READ, "confirm_sensitive"): [{"note": NEVER_PATH, "confirm_sensitive": True}],
    (RELATED, "note"): each("note", [*NAMES, PRIVATE_PATH]),
    (RELATED, "vault"): each("vault", VAULTS, note="Notes/Peas.md"),
    (RELATED, "vaults"): each("vaults", [[name] for name in VAULTS], note="Notes/Peas.md"),
    (RELATED, "text"): each("text", ["peas and beans", *SECRETS, "peas textoprivo textonevero"]),
    (RELATED, "max_results"): [{"note": "Notes/Peas.md", "max_results": 200}],
    (RELATED, "hide_linked"): each("hide_linked", [True, False], note="Notes/Peas.md"),
    (RELATED, "tags"): each(
        "tags", [["tagoprivo", "inlineoprivo"], ["tagonevero"], ["tagowitho"]], text="peas"
    ),
    (RELATED, "confirm_sensitive"): [{"note": NEVER_PATH, "confirm_sensitive": True}],
    (SUGGEST, "note"): each("note", [*NAMES, PRIVATE_PATH]),
    (SUGGEST, "vault"): each("vault", VAULTS, note="Notes/Peas.md"),
    (SUGGEST, "max_results"): [{"note": "Notes/Peas.md", "max_results": 50}],
    (SUGGEST, "confirm_sensitive"): [{"note": NEVER_PATH, "confirm_sensitive": True}],
    (ADD, "note"): each("note", [NEVER_PATH, "Wolframit", "Qorvexa"], target="Notes/Peas.md"),
    (ADD, "target"): each(
        "target", [NEVER_PATH, "Wolframit", "Qorvexa", PRIVATE_PATH], note="Notes/Peas.md"
    ),
    (ADD, "vault"): [{"note": NEVER_PATH, "target": "Notes/Peas.md", "vault": "Zanzibar"}],
    (ADD, "rel"): [{"note": NEVER_PATH, "target": "Notes/Peas.md", "rel": "x"}],
    (ADD, "add_missing_id"): [
        {"note": "Notes/Peas.md", "target": NEVER_PATH, "add_missing_id": True}
    ],
    (ADD, "confirm_sensitive"): [
        {"note": "Notes/Peas.md", "target": NEVER_PATH, "confirm_sensitive": True}
    ],
    (STORE, "key"): [{"key": "spade", "value": "in the shed", "source": "Notes/Props.md"}],
    (STORE, "value"): [{"key": "spade", "value": "in the barn", "source": "Notes/Props.md"}],
    (STORE, "source"): each(
        "source", [NEVER_PATH, "Wolframit", "Qorvexa", PRIVATE_PATH], key="k", value="v"
    ),
    (STORE, "vault"): [{"key": "k", "value": "v", "source": "Notes/Peas.md", "vault": "Zanzibar"}],
    (STORE, "confirm_sensitive"): [
        {"key": "k", "value": "v", "source": NEVER_PATH, "confirm_sensitive": True}
    ],
    (RECALL, "query"): each("query", ["peas", "what do I owe", *SECRETS]),
    (RECALL, "key"): each("key", ["memkeyoprivo", "memkeyonevero", "memkeyowitho", "nothing"]),
    (RECALL, "limit"): [{"query": "peas memkeyoprivo owe", "limit": 50}],
    (RECALL, "confirm_sensitive"): [{"query": "peas", "confirm_sensitive": False}],
    (STATUS, None): [{}],
    (INDEX, "mode"): each("mode", ["sync"]),
    (CANCEL, "job_id"): each("job_id", ["textoprivo"]),
    (SYNC_STATUS, None): [{}],
    (LINK_ADD, "root_path"): each("root_path", ["/nowhere/else", "relative"]),
    (LINK_ADD, "mode"): [{"root_path": "/nowhere/else", "mode": "read_write"}],
    (LINK_ADD, "include"): [{"root_path": "/nowhere/else", "include": ["Cellar"]}],
    (LINK_ADD, "exclude"): [{"root_path": "/nowhere/else", "exclude": ["Cellar"]}],
    (LINK_ADD, "name"): [{"root_path": "/nowhere/else", "name": "Zanzibar"}],
    (LINK_LIST, None): [{}],
    (LINK_REMOVE, "link_id"): each("link_id", ["vault", "unknown"]),
    (LINK_MODE, "link_id"): each("link_id", VAULTS, mode="read_write"),
    (LINK_MODE, "mode"): [{"link_id": "vault", "mode": "read_only"}],
    (LINK_MODE, "paused"): [{"link_id": "vault", "paused": True}],
    (SYNC_NOW, "link_id"): each("link_id", ["vault", "unknown"]),
    (LINK_STATUS, "link_id"): each("link_id", VAULTS),
    (LINK_STATUS, "limit"): each("limit", [0, 500], link_id="vault"),
}


def parameters() -> set[tuple[str, str | None]]:
    found: set[tuple[str, str | None]] = set()
    for name, tool in TOOLS.items():
        fields = tool.params.model_json_schema().get("properties", {})
        found |= {(name, field) for field in fields} or {(name, None)}
    return found


def test_every_parameter_of_every_tool_has_an_entry_that_uses_it() -> None:
    assert parameters() == set(TABLE), "say in TABLE how an attacker would use it"
    unused = [
        (tool, parameter)
        for (tool, parameter), calls in TABLE.items()
        if parameter is not None and not any(parameter in arguments for arguments in calls)
    ]
    assert unused == []


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    root = tmp_path_factory.mktemp("planted")
    with twins_of(root, lambda place, full: plant(place, with_hidden=full)) as found:
        yield found


def names_a_private_path(arguments: Arguments) -> bool:
    return PRIVATE_PATH in arguments.values()


def comparable(envelope: Any) -> str:
    """An answer without the times and numbers that differ between any two installations."""
    data = envelope["data"] or {}
    for fact in data.get("facts", []):
        fact["stored_at"] = ""
    for result in data.get("results", []):
        result["link_id"] = ""
    for link in data.get("links", [data]):
        link.pop("link_id", None)
    return json.dumps({**envelope, "meta": None}, sort_keys=True)


@pytest.mark.parametrize(("tool", "parameter"), TABLE)
def test_no_answer_tells_a_secret_or_depends_on_one(
    twins: Twins, tool: str, parameter: str | None
) -> None:
    for arguments in TABLE[tool, parameter]:
        envelope: Any = call(twins.full, tool, arguments)
        assert told(json.dumps(envelope, ensure_ascii=False), arguments) == [], arguments
        if names_a_private_path(arguments):
            assert (envelope["data"], envelope["error"]["code"]) == (None, "SENSITIVE_FILTERED")
        elif tool not in WHOLE:
            other = call(twins.bare, tool, arguments)
            assert comparable(envelope) == comparable(other), arguments


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """The notes were hidden, and one was deleted, after they were indexed; nobody synced since."""
    root = tmp_path_factory.mktemp("changed")
    with twins_of(root, lambda place, full: plant_changed(place, with_hidden=full)) as found:
        yield found


@pytest.mark.parametrize(("tool", "parameter"), TABLE)
def test_a_policy_that_changed_after_indexing_holds_in_the_next_answer(
    changed: Twins, tool: str, parameter: str | None
) -> None:
    if tool in (INDEX, SYNC_NOW):
        return  # these would index
    for arguments in TABLE[tool, parameter]:
        envelope: Any = call(changed.full, tool, arguments)
        assert told(json.dumps(envelope, ensure_ascii=False), arguments) == [], arguments
        if names_a_private_path(arguments):
            assert (envelope["data"], envelope["error"]["code"]) == (None, "SENSITIVE_FILTERED")
        elif tool not in WHOLE:
            # How rare a word is may still be counted with them until the next sync, so that scores
            # differ; what is answered, and why not, does not.
            other: Any = call(changed.bare, tool, arguments)
            assert kind_of_answer(envelope) == kind_of_answer(other), arguments
            assert files_in(envelope) <= set(OPEN), arguments


def test_a_policy_that_changed_after_indexing_holds_in_the_list_of_resources(
    changed: Twins,
) -> None:
    names, _ = listed_notes(changed.full, "", 500)
    assert {path for path, _ in names} == set(OPEN)


def kind_of_answer(envelope: Any) -> tuple[bool, str | None]:
    """Whether an answer names any note, and why it fails if it does."""
    return bool(files_in(envelope)), envelope["error"] and envelope["error"]["code"]


def files_in(envelope: Any) -> set[str]:
    return {one["source_file"] for one in (envelope["data"] or {}).get("results", [])}


def test_a_private_notes_path_answers_the_same_whatever_is_asked_of_it(twins: Twins) -> None:
    answers = {
        str(call(twins.full, tool, arguments)["error"])
        for (tool, _), calls in TABLE.items()
        for arguments in calls
        if names_a_private_path(arguments)
    }
    assert len(answers) == 1


def test_the_secrets_are_there_for_the_owner_to_see(twins: Twins) -> None:
    """Else the tests above would prove nothing."""

    def owns(tool: str, **arguments: object) -> str:
        return json.dumps(call(twins.full, tool, arguments, OWNER)).lower()

    private, never = owns(READ, note=PRIVATE_PATH), owns(READ, note=NEVER_PATH)
    assert [word for word in PRIVATE[:15] if word not in private] == []
    assert [word for word in NEVER[:15] if word not in never] == []
    assert "qorvexa" in owns(SEARCH, query="textoprivo")
    assert "qorvexa" in owns(SEARCH, query="peas prop:pin>=4711987")
    assert "wolframit" in owns(STATUS)
    assert "valueoprivo" in owns(RECALL, key="memkeyoprivo")
    assert "qorvexa" in owns(RELATED, note="Notes/Peas.md")
    shown = owns(READ, note="Notes/Garden.md") + owns(READ, note="Notes/Props.md")
    assert [word for word in WITHHELD[:6] if word not in shown] == []


# Names of files and folders stay; all else of a private note or section is behind the screen.
NAMED = {"qorvexa", "wolframit", *(folder.lower() for folder in FOLDERS)}
# Every tool that reads; the others answer with names and numbers of what they changed.
READING = [name for name, tool in TOOLS.items() if tool.is_read_only]
NOTES = (*OPEN, *HIDDEN)
# Every route of the page that shows something. The map sends names and tags, and the page leaves
# them out: `tests/page/test_page_privacy.py`. Files are shown where the note shows them.
ROUTES: dict[str, list[dict[str, str]]] = {
    "conflicts": [{}],
    "file": [{"path": "Notes/Garden.md"}, {"path": "textoprivo.png", "from": PRIVATE_PATH}],
    "filters": [
        {"kind": kind, "typed": typed}
        for kind in ("folder", "tag", "property")
        for typed in ("", "t", "key", "prop")
    ],
    "map": [{}, {"note": PRIVATE_PATH}],
    "memory": [{}],
    "note": [{"path": path} for path in NOTES],
    "relation": [{"note": "Notes/Peas.md", "target": path} for path in NOTES if path[-2:] == "md"],
    "settings": [{}],
    "start": [{}],
    "trash": [{}],
}
# Its changes: each is a person's choice, and answers with what was chosen.
CHANGED = {"settings", "memory/forget", "conflicts/resolve", "trash/restore"}


def test_privacy_screen_every_route_of_the_page_has_an_entry() -> None:
    assert {*READS, "note"} == set(ROUTES), "say in ROUTES what could be asked"
    assert set(CHANGES) == CHANGED


@pytest.mark.parametrize("tool", READING)
def test_privacy_screen_no_tool_tells_the_owner_a_secret(twins: Twins, tool: str) -> None:
    calls = [asked for (name, _), rows in TABLE.items() if name == tool for asked in rows]
    for arguments in calls:
        envelope: Any = call(twins.full, tool, arguments, SCREENED)
        said = set(told(json.dumps(envelope, ensure_ascii=False), arguments))
        assert said - NAMED == set(), arguments


@pytest.mark.parametrize("route", ROUTES)
def test_privacy_screen_no_route_of_the_page_tells_a_secret(twins: Twins, route: str) -> None:
    read = {**READS, "note": read_note}[route]
    for asked in ROUTES[route]:
        try:
            found: Any = read(twins.full, asked, SCREENED)
            said = bytes(found.body).decode() if isinstance(found, Response) else json.dumps(found)
        except ObsidianRagError as error:
            said = error.message
        assert set(told(said, asked)) - NAMED == set(), asked


@pytest.fixture(scope="module")
def door(twins: Twins) -> Iterator[Address]:
    """The daemon of the installation with hidden notes."""
    environ = {"OBSIDIAN_RAG_HOME": str(twins.root / "home")}
    with ending(start_daemon(environ=environ)) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = find_daemon(twins.root / "home")
        assert found is not None, said
        yield Address(found.port, found.token)


def sample() -> list[tuple[str, Arguments]]:
    """A few calls of each entry: over other doors the tools are the same."""
    return [
        (tool, arguments)
        for (tool, _), calls in TABLE.items()
        for arguments in (calls if len(calls) < 4 else [calls[0], calls[1], calls[-1]])
    ]


def test_no_answer_over_http_tells_a_secret(door: Address) -> None:
    for tool, arguments in sample():
        reply = door.ask("POST", f"/tools/{tool}", arguments)
        said = f"{dict(reply.headers)} {reply.body.decode()}"
        assert told(said, arguments) == [], (tool, arguments)
    for path in ("/tools", "/healthz", "/openapi.json", f"/tools/{PRIVATE_PATH}"):
        reply = door.get(path)
        assert told(f"{dict(reply.headers)} {reply.body.decode()}", path) == []


def test_no_command_is_run_for_an_agent(door: Address) -> None:
    """What a command prints is for the owner of the notes, private ones included."""
    for asked in (["read", PRIVATE_PATH], ["search", *SECRETS[:3]], ["status", "--all"]):
        reply = door.ask("POST", "/command", {"arguments": asked})
        assert reply.status == 403
        assert told(f"{dict(reply.headers)} {reply.body.decode()}", asked) == []


def test_no_event_names_a_file_to_an_agent(door: Address, twins: Twins) -> None:
    with door.listen(caller=None) as agent, door.listen() as owner:
        file = twins.root / "vault" / PRIVATE_PATH
        # A daemon that has just been started looks at the whole vault, and names no file.
        for _ in range(20):
            file.write_text(file.read_text(encoding="utf-8") + "\nmore\n", encoding="utf-8")
            heard, known = agent.until("changes"), owner.until("changes")
            if known[-1].data["paths"]:
                break
    assert [told(str(event.data), None) for event in heard if told(str(event.data), None)] == []
    assert known[-1].data["paths"] == [PRIVATE_PATH]
    assert heard[-1].data["paths"] == []


async def answer_of(request: Awaitable[Any]) -> str:
    """What a request is answered with, or refused with, as text."""
    try:
        found = await request
    except MCPError as error:
        return f"{error.error.message} {json.dumps(error.error.data)}"
    return str(found.model_dump_json())


@pytest.mark.parametrize("flags", [(), (ALONE,)], ids=["by the daemon", "alone"])
def test_no_answer_over_mcp_tells_a_secret(
    door: Address,
    twins: Twins,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(twins.root / "home"))
    uris = [f"obsidian-rag://note/{name}" for name in (*NAMES, PRIVATE_PATH, "Cellar/", "Attic/")]

    async def session(client: Client) -> list[tuple[object, str]]:
        found: list[tuple[object, str]] = []
        for tool, arguments in sample():
            found.append((arguments, await answer_of(client.call_tool(tool, arguments))))
        for uri in uris:
            found.append((uri, await answer_of(client.read_resource(uri))))
        for ask in (
            client.list_resources,
            client.list_resource_templates,
            client.list_prompts,
            client.list_tools,
        ):
            found.append((None, await answer_of(ask())))
        for prompt in ("ask_vault", "remember", "vault_health"):
            given = {"question": "peas?", "fact": "peas"}
            found.append((None, await answer_of(client.get_prompt(prompt, given))))
        return found

    said = tmp_path / "stderr.txt"
    answers = talk(session, said, *flags)
    assert [(asked, told(text, asked)) for asked, text in answers if told(text, asked)] == []
    listed = next(text for asked, text in answers if asked is None)
    assert "Notes/Peas.md" in listed
    never = next(text for asked, text in answers if asked == uris[0])
    assert "NOT_FOUND" in never
    assert told(said.read_text(encoding="utf-8"), None) == []


def test_no_log_has_a_secret(door: Address, twins: Twins) -> None:
    """After all of the above, and after a tool that failed in a way nobody expected."""
    files = [file for file in (twins.root / "home" / "logs").rglob("*") if file.is_file()]
    assert files
    for file in files:
        assert told(file.read_text(encoding="utf-8"), None) == [], file
