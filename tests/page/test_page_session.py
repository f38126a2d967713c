"""Signing in, staying signed in, and what comes without a session."""

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect
from tests.page.site import Site, Window, new_window, sign_in
from tests.waiting import PATIENCE_S


def ask(
    site: Site, method: str, path: str, headers: Mapping[str, str], body: str = ""
) -> tuple[int, http.client.HTTPMessage, bytes]:
    address = urlsplit(site.url).netloc
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    connection.request(method, path, body, {"Host": address, **headers})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, reply.headers, content


def cookie_of(site: Site) -> str:
    """The cookie of a new session, as a browser gets it."""
    code = site.link().partition("#")[2]
    own = {"Origin": site.url, "X-Obsidian-Rag-Page": "1", "Content-Type": "application/json"}
    status, headers, _ = ask(site, "POST", "/page/signin", own, json.dumps({"code": code}))
    assert status == 200
    told = headers["Set-Cookie"]
    assert all(part in told for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
    return str(told.partition(";")[0])


def test_a_link_signs_in_once_and_leaves_the_address_bar(visitor: Window) -> None:
    page, link = visitor.page, visitor.site.link()
    page.goto(link)
    expect(page.get_by_role("searchbox")).to_be_visible()
    assert link.partition("#")[2] not in page.url
    assert page.evaluate("() => document.cookie") == ""
    visitor.expected = ("403",)
    other = page.context.browser
    assert other is not None
    context, second = new_window(other, visitor.site)
    second.page.goto(link)
    expect(second.page.get_by_role("heading")).to_have_text("That link no longer works")
    context.close()


def test_a_visitor_reads_how_to_get_in(visitor: Window) -> None:
    visitor.expected = ("401",)
    page = visitor.open("/note/Notes/Finance/Debts.md")
    expect(page.get_by_role("heading")).to_have_text("Your notes are one step away")
    expect(page.locator("code")).to_have_text("obsidian-rag open")
    assert "Debts" not in page.locator("main").inner_text()


def test_a_new_start_of_the_daemon_signs_nobody_out(browser: Browser, site: Site) -> None:
    context, window = new_window(browser, site)
    sign_in(window)
    before = site.url
    site.stop()
    site.run("serve", "--detach")
    assert site.url == before
    window.expected = ("ERR_CONNECTION_REFUSED",)  # the stream of events broke meanwhile
    window.open("/search")
    expect(window.page.get_by_role("searchbox")).to_be_visible()
    window.check()
    context.close()


def test_signing_out_ends_the_session(site: Site) -> None:
    cookie = cookie_of(site)
    own = {"Cookie": cookie, "Origin": site.url, "X-Obsidian-Rag-Page": "1"}
    assert ask(site, "GET", "/page/start", {"Cookie": cookie})[0] == 200
    assert ask(site, "POST", "/page/signout", own)[0] == 200
    assert ask(site, "GET", "/page/start", {"Cookie": cookie})[0] == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {"X-Obsidian-Rag-Page": None},
        {"Origin": None},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.test"},
    ],
    ids=str,
)
def test_the_cookie_alone_changes_nothing(site: Site, wrong: dict[str, str | None]) -> None:
    """Any server on this machine is sent the cookie, and any page can make a browser send it."""
    good = {
        "Cookie": cookie_of(site),
        "Origin": site.url,
        "X-Obsidian-Rag-Page": "1",
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/json",
    }
    assert ask(site, "POST", "/tools/obsidian_rag_status", good, "{}")[0] == 200
    sent = {name: value for name, value in {**good, **wrong}.items() if value is not None}
    status = 421 if "Host" in wrong else 403
    assert ask(site, "POST", "/tools/obsidian_rag_status", sent, "{}")[0] == status


def test_other_sites_read_nothing_with_the_cookie(site: Site) -> None:
    cookie = cookie_of(site)
    for path in ("/page/start", "/events", "/page/file?path=x.png"):
        asked = {"Cookie": cookie, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}
        assert ask(site, "GET", path, asked)[0] == 403


def test_the_page_brings_its_policy_and_is_cached(site: Site) -> None:
    status, headers, content = ask(site, "GET", "/", {})
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert str(site.vault) not in content.decode()
    assert ask(site, "GET", "/search", {"If-None-Match": headers["ETag"]})[0] == 304
    script = content.decode().split('src="')[1].split('"')[0]
    status, headers, small = ask(site, "GET", script, {"Accept-Encoding": "gzip"})
    assert (status, headers["Content-Encoding"]) == (200, "gzip")
    assert "immutable" in headers["Cache-Control"]
    assert len(small) < 4096
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(site, "GET", "/", foreign)[0] == 200
    assert ask(site, "GET", "/tools", foreign)[0] == 403


def test_open_starts_the_daemon_once_and_prints_a_link_that_signs_in(
    browser: Browser, tmp_path: Path
) -> None:
    machine = Site(tmp_path / "machine")
    try:
        first, second = (machine.run("open", "--print").strip() for _ in range(2))
        assert first.partition("#")[0] == second.partition("#")[0] == machine.url + "/signin"
        assert first != second
        context, window = new_window(browser, machine)
        window.page.goto(second)
        expect(window.page.get_by_role("heading")).to_have_text(
            "Which notes do you want to search?"
        )
        window.check()
        context.close()
    finally:
        machine.stop()
