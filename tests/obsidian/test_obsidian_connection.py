"""The engine away, wrong, empty, busy: each state says what is and offers one action."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.folders import write_config
from tests.obsidian.harness import NEEDS_BROWSER, Place, app, picture, serving
from tests.obsidian.notes import NOTES, POND, open_note, rows, state
from tests.waiting import until

from obsidian_rag.transports.daemon_client import find_daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = NEEDS_BROWSER
MakePlace = Callable[[], Place]


def one_action(page: "Page") -> str:
    """The words of the one button of the state."""
    (button,) = state(page).locator("button").all_inner_texts()
    return button


def test_without_an_engine_the_panel_tells_how_to_install_it(
    browser: "Browser", new_place: MakePlace
) -> None:
    place = new_place()
    place.write(NOTES)
    with serving(place) as address, app(browser, address) as page:
        open_note(page, POND)
        state(page).get_by_text("The engine is not running").wait_for()
        assert "pipx install ./obsidian-rag" in state(page).locator("code").inner_text()
        assert str(place.vault) in state(page).locator("code").inner_text()
        assert one_action(page) == "Copy command"
        assert page.locator(".rag-companion-status").inner_text() == "RAG: engine off"
        picture(page, "engine-off")


def test_the_engine_is_started_by_a_click(browser: "Browser", new_place: MakePlace) -> None:
    place = new_place()
    place.write(NOTES)
    place.index()
    program = str(Path(sys.executable).parent / "obsidian-rag")
    place.programs.add(program)
    with serving(place) as address, app(browser, address) as page:
        page.evaluate("(program) => plugin.saveMachine({program})", program)
        open_note(page, POND)
        try:
            page.get_by_role("button", name="Start engine").click()
            rows(page).first.wait_for()
            assert place.started == [[program, "serve", "--detach", "--json"]]
        finally:
            subprocess.run([program, "serve", "--stop"], env=place.environ, check=False)
            until(lambda: find_daemon(place.home) is None)


def test_an_engine_that_knows_another_vault_says_so(
    browser: "Browser", new_place: MakePlace
) -> None:
    place = new_place()
    place.write(NOTES)
    place.index()
    with place.daemon(), serving(place) as address:
        moved = f"{address}?quiet"
        with app(browser, moved) as page:
            page.evaluate(
                """async () => {
                  plugin.connection.place.vaultPath = '/somewhere/else';
                  plugin.onUserEnable();
                  await plugin.connection.reconnect();
                }"""
            )
            open_note(page, POND)
            state(page).get_by_text("does not know this vault").wait_for()
            assert "obsidian-rag link add" in state(page).locator("code").inner_text()
            assert one_action(page) == "Copy command"


def test_an_index_that_is_not_there_is_made_by_a_click(
    browser: "Browser", new_place: MakePlace
) -> None:
    place = new_place()
    place.write(NOTES)
    write_config(place.home, place.vault, {"watcher.enabled": False})
    with place.daemon(), serving(place) as address, app(browser, address) as page:
        open_note(page, POND)
        # Until there is an answer the panel still says that no note is open.
        told = page.locator(".rag-companion-list:not(.is-waiting)")
        told.locator(".rag-companion-state, .rag-companion-row").first.wait_for()
        if state(page).count():
            assert one_action(page) in ("Index vault", "Show details")
            index = page.get_by_role("button", name="Index vault")
            if index.count():
                index.click()
        rows(page).first.wait_for()


def test_the_engine_comes_back_with_another_token(browser: "Browser", new_place: MakePlace) -> None:
    place = new_place()
    place.write(NOTES)
    place.index()
    with serving(place) as address, app(browser, address) as page:
        with place.daemon():
            page.evaluate("plugin.connection.reconnect()")
            open_note(page, POND)
            rows(page).first.wait_for()
        until(lambda: page.locator(".rag-companion-status").inner_text() == "RAG: engine off")
        state(page).get_by_text("The engine is not running").wait_for()
        with place.daemon():
            rows(page).first.wait_for()


def test_nothing_secret_is_stored(browser: "Browser", new_place: MakePlace) -> None:
    place = new_place()
    place.write(NOTES)
    place.index()
    with place.daemon(), serving(place) as address, app(browser, address) as page:
        page.evaluate("plugin.savePanel({hideLinked: false})")
        found = find_daemon(place.home)
        assert found is not None
        stored = page.evaluate(
            "JSON.stringify([plugin.data, {...sessionStorage}, {...localStorage}])"
        )
        assert found.token not in stored
