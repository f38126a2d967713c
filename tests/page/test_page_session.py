"""Signing in, staying signed in, and what comes without a session."""

import http.client
import http.server
import json
import threading
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


def session_of(site: Site) -> dict[str, str]:
    """The headers of a new session, as a browser sends them."""
    code = site.link().partition("#")[2]
    own = {"Origin": site.url, "X-Obsidian-Rag-Page": "1", "Content-Type": "application/json"}
    status, headers, body = ask(site, "POST", "/page/signin", own, json.dumps({"code": code}))
    assert status == 200
    told = headers["Set-Cookie"]
    assert all(part in told for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
    proof = json.loads(body)["data"]["proof"]
    return {"Cookie": str(told.partition(";")[0]), "X-Obsidian-Rag-Page": proof}


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
    session = session_of(site)
    assert ask(site, "GET", "/page/start", session)[0] == 200
    assert ask(site, "POST", "/page/signout", {**session, "Origin": site.url})[0] == 200
    assert ask(site, "GET", "/page/start", session)[0] == 401


def test_a_cookie_that_another_server_was_sent_is_worth_nothing(window: Window, site: Site) -> None:
    """Cookies ignore the port: a browser sends ours to every server on this machine."""
    stolen: list[str] = []

    class Thief(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stolen.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<script>document.title = localStorage.length</script>")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Thief) as thief:
        threading.Thread(target=thief.serve_forever, daemon=True).start()
        page = window.open("/note/Notes/Kinds/Marks.md")
        picture = page.locator(".note-body img").get_attribute("src") or ""
        page.goto(f"http://127.0.0.1:{thief.server_port}/")
        assert page.title() == "0", "storage belongs to one port"
        thief.shutdown()
    cookie = {"Cookie": stolen[0]}
    assert cookie["Cookie"] != "", "Chromium sends it"
    guessed = {**cookie, "Origin": site.url, "X-Obsidian-Rag-Page": "1"}
    for headers in (cookie, guessed):
        for path in ("/page/start", "/page/note?path=Finance/Debts.md", "/events", "/page/map"):
            assert ask(site, "GET", path, headers)[0] == 401, path
        assert ask(site, "GET", "/events?proof=1", headers)[0] == 401
        assert ask(site, "GET", picture.partition("&key=")[0], headers)[0] == 401
        other = picture.replace("dot.png", "other.png")
        assert other != picture
        assert ask(site, "GET", other, headers)[0] == 401
    status, _, _ = ask(site, "POST", "/tools/obsidian_rag_status", guessed, "{}")
    assert status == 401
    assert ask(site, "GET", picture, cookie)[0] == 200, "only who has read the note knows it"


@pytest.mark.parametrize(
    "wrong",
    [
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
        **session_of(site),
        "Origin": site.url,
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/json",
    }
    assert ask(site, "POST", "/tools/obsidian_rag_status", good, "{}")[0] == 200
    sent = {name: value for name, value in {**good, **wrong}.items() if value is not None}
    status = 421 if "Host" in wrong else 403
    assert ask(site, "POST", "/tools/obsidian_rag_status", sent, "{}")[0] == status


def test_other_sites_read_nothing_with_the_cookie(site: Site) -> None:
    session = session_of(site)
    for path in ("/page/start", "/events", "/page/file?path=x.png"):
        asked = {**session, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}
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


def test_after_a_view_that_cannot_be_loaded_the_others_are_shown_again(window: Window) -> None:
    page = window.open("/search?q=rain+garden")
    expect(page.locator(".hit").first).to_be_visible()
    page.route("**/views/vaults.js", lambda route: route.abort())
    page.get_by_role("link", name="Vaults").click()
    expect(page.locator("#main .state.bad")).to_be_visible()
    page.go_back()
    expect(page.locator(".hit").first).to_be_visible()
    window.expected = ("ERR_FAILED",)


def test_a_search_that_failed_is_asked_again_when_the_daemon_is_back(
    browser: Browser, site: Site
) -> None:
    context, window = new_window(browser, site)
    sign_in(window)
    page = window.open("/search")
    site.stop()
    page.get_by_role("searchbox").fill("rain garden")
    expect(page.locator(".answer .state.bad")).to_be_visible()
    site.run("serve", "--detach")
    expect(page.locator(".hit").first).to_be_visible()
    context.close()
