"""Notes as MCP resources: listed in pages, read as far as the guard allows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import INVALID_PARAMS, ErrorData, TextResourceContents
from tests.fixture_types import MakeEngine, MakeVault
from tests.transports.mcp_client import ALONE, failure_of, talk, talk_in_process

from obsidian_rag.engine import run_index
from obsidian_rag.index import Mode

NOTE = "obsidian-rag://note/"
CANVAS = '{"nodes":[{"id":"1","type":"text","text":"A map","x":0,"y":0,"width":1,"height":1}]}'
NOTES: dict[str, str | bytes] = {
    "Finance/Debts.md": "---\ntitle: What I owe\n---\nI owe Sreenivas two hundred dollars.\n",
    "Boards/Map.canvas": CANVAS,
    "Öl & Essig #1?.md": "Oil and vinegar\n",
    "Private/Diary.md": "---\nrag: private\n---\nzephyr thoughts\n",
    "Private/Broken.md": "---\ntitle: [\nrag: private\n---\nquiet thoughts\n",
    "Home/Keys.md": "---\nrag: false\n---\nunder the mat\n",
    "zzz-Archive/Old.md": "old\n",
}


@pytest.fixture
def said(tmp_path: Path) -> Path:
    return tmp_path / "stderr.txt"


def test_notes_are_listed_by_path_without_those_that_are_not_for_agents(
    make_vault: MakeVault, engine: MakeEngine, said: Path
) -> None:
    run_index(engine(make_vault(NOTES)), Mode.FULL)

    async def session(client: Client) -> tuple[Any, Any]:
        return await client.list_resources(), await client.list_resource_templates()

    listed, templates = talk(session, said, ALONE)
    assert listed.next_cursor is None
    shown = [(note.uri, note.name, note.description, note.mime_type) for note in listed.resources]
    assert shown == [
        (f"{NOTE}Boards/Map.canvas", "Map", "Boards/Map.canvas", "application/json"),
        (f"{NOTE}Finance/Debts.md", "What I owe", "Finance/Debts.md", "text/markdown"),
        (
            f"{NOTE}%C3%96l%20%26%20Essig%20%231%3F.md",
            "Öl & Essig #1?",
            "Öl & Essig #1?.md",
            "text/markdown",
        ),
    ]
    (template,) = templates.resource_templates
    assert template.uri_template == "obsidian-rag://note/{+path}"


def test_many_notes_come_in_pages_and_private_ones_leave_no_gap(
    make_vault: MakeVault, engine: MakeEngine
) -> None:
    private = {f"Notes/{n:03}.md": "---\nrag: private\n---\nhidden\n" for n in range(40, 160)}
    public = {f"Notes/{n:03}.md": f"note {n}\n" for n in range(340) if not 40 <= n < 160}
    run_index(engine(make_vault(private | public)), Mode.FULL)

    async def session(client: Client) -> list[list[str]]:
        pages, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            pages.append([note.description or "" for note in page.resources])
            if (cursor := page.next_cursor) is None:
                return pages

    pages = talk_in_process(session)
    assert [len(page) for page in pages] == [100, 100, 20]
    assert [path for page in pages for path in page] == sorted(public)


def test_a_note_is_read_with_its_text_and_its_facts(
    make_vault: MakeVault, engine: MakeEngine
) -> None:
    long = "".join(f"line {n} {'x' * 90}\n" for n in range(1200))
    run_index(engine(make_vault({**NOTES, "Long.md": long})), Mode.FULL)

    async def session(client: Client) -> list[Any]:
        uris = [note.uri for note in (await client.list_resources()).resources]
        return [(await client.read_resource(uri)).contents for uri in uris]

    board, debts, cut, oil = talk_in_process(session)
    assert [block.text for block in board] == [CANVAS]
    assert board[0].mime_type == "application/json"
    assert debts[0].text.endswith("I owe Sreenivas two hundred dollars.")
    assert (debts[0].meta["title"], debts[0].meta["untrusted"]) == ("What I owe", True)
    assert debts[0].meta["sensitive_categories"] == ["financial"]
    assert [block.text for block in oil] == ["Oil and vinegar"]
    beginning, rest = cut
    assert isinstance(rest, TextResourceContents)
    assert long.startswith(beginning.text)
    assert f"line {len(beginning.text.splitlines())} of 1200" in rest.text


REFUSED = {
    f"{NOTE}Private/Diary.md": "SENSITIVE_FILTERED",
    f"{NOTE}Home/Keys.md": "NOT_FOUND",
    f"{NOTE}zzz-Archive/Old.md": "SECURITY_VIOLATION",
    f"{NOTE}../../etc/passwd": "SECURITY_VIOLATION",
    f"{NOTE}%2e%2e/%2e%2e/etc/passwd": "SECURITY_VIOLATION",
    f"{NOTE}/etc/passwd": "SECURITY_VIOLATION",
    f"{NOTE}Nowhere.md": "NOT_FOUND",
    NOTE: "INVALID_ARGUMENT",
    "file:///etc/passwd": "INVALID_ARGUMENT",
}


def test_a_refused_note_is_a_protocol_error_with_our_code(
    make_vault: MakeVault, engine: MakeEngine
) -> None:
    run_index(engine(make_vault(NOTES)), Mode.FULL)

    async def session(client: Client) -> tuple[list[ErrorData], ErrorData]:
        refusals = [await failure_of(client.read_resource(uri)) for uri in REFUSED]
        return refusals, await failure_of(client.list_resources(cursor="not ours"))

    refusals, bad_cursor = talk_in_process(session)
    assert {error.data["code"] for error in refusals if error.code != INVALID_PARAMS} == set()
    assert [error.data["code"] for error in refusals] == list(REFUSED.values())
    assert (bad_cursor.code, bad_cursor.data["code"]) == (INVALID_PARAMS, "INVALID_ARGUMENT")
    for error in refusals:
        assert "zephyr" not in str(error)


def test_without_an_index_there_are_no_resources_and_no_data_folder_is_made(
    make_vault: MakeVault, home: Path, configure: Callable[..., None]
) -> None:
    configure(make_vault(NOTES), {})

    async def session(client: Client) -> Any:
        return await client.list_resources()

    assert talk_in_process(session).resources == []
    assert not (home / "state.db").exists()
