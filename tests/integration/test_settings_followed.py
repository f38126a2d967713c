"""A running daemon follows config.json: privacy before the next answer, the rest by its part."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.embed.embedding_doubles import FakeOllama, fake_ollama
from tests.folders import write_config
from tests.integration.living import (
    QUICK,
    Cli,
    Configure,
    Living,
    MakeVault,
    living,
    living_below,
)
from tests.waiting import PATIENCE_S

NOTES = {
    "Debts.md": "# Debts\nI owe Sreenivas 40 dollars.\n",
    "Old/Pasture.md": "# Pasture\nThe heifer grazes.\n",
    "Garden.md": "# Garden\nIris and sedge. See [[Pasture]].\n",
    "Draft.txt": "A draft about kelp.\n",
}


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    root = make_vault(NOTES)
    configure(root, QUICK)
    return root


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    with living_below(tmp_path_factory.mktemp("followed"), NOTES, QUICK) as one:
        one.index()
        yield one


@pytest.fixture
def daemon(shared: Living, monkeypatch: pytest.MonkeyPatch) -> Living:
    """The daemon of these tests, with the settings it began with, which commands find."""
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(shared.home))
    set_back(shared)
    shared.index("sync")
    return shared


def set_back(daemon: Living) -> None:
    write_config(daemon.home, daemon.home.parent / "vault", QUICK)


def set_by_hand(home: Path, key: str, value: object) -> None:
    """As an editor does that writes the file where it is."""
    file = home / "config.json"
    tree = json.loads(file.read_text())
    section, _, name = key.partition(".")
    tree.setdefault(section, {})[name] = value
    file.write_text(json.dumps(tree))


def debts(daemon: Living) -> Any:
    return daemon.call("search", query="how much do I owe Sreenivas")


def test_a_stricter_policy_holds_in_the_next_answer_however_the_file_was_changed(
    daemon: Living, cli: Cli
) -> None:
    home = daemon.home
    assert "40 dollars" in json.dumps(debts(daemon)["data"])
    done = cli("config", "set", "security.sensitive_policy", "withhold")
    assert done.code == 0
    withheld = debts(daemon)
    assert withheld["error"]["code"] == "SENSITIVE_FILTERED"
    assert "40 dollars" not in json.dumps(withheld["data"])
    # Replaced as a whole, and back again at once: two writes within one tick of the clock.
    for _ in range(5):
        set_back(daemon)
        assert "40 dollars" in json.dumps(debts(daemon)["data"])
        set_by_hand(home, "security.sensitive_policy", "withhold")
        assert "40 dollars" not in json.dumps(debts(daemon)["data"])
    set_by_hand(home, "security.require_confirmation_for", ["health"])
    assert "40 dollars" in json.dumps(debts(daemon)["data"])
    set_by_hand(home, "security.sensitive_sections", ["Debts"])
    assert "40 dollars" not in json.dumps(debts(daemon)["data"])


def test_a_folder_that_is_denied_is_gone_from_the_next_answer_and_soon_from_the_index(
    daemon: Living, cli: Cli
) -> None:
    assert daemon.search("heifer")[0] == "Old/Pasture.md"
    done = cli("config", "set", "indexing.deny_dirs", '["Old"]')
    assert (done.code, "daemon uses it from now on" in done.err) == (0, True)
    assert "Old/Pasture.md" not in daemon.search("heifer")
    related = daemon.call("related", note="Garden.md")["data"]
    assert "Pasture" not in json.dumps(related)
    assert daemon.call("read", note="Old/Pasture.md")["data"] is None
    while daemon.wait_for("changes")["removed"] != 1:
        continue
    assert daemon.call("status")["data"]["total_docs"] == 2
    # And the worker has the new rules for whatever comes later.
    assert cli("config", "unset", "indexing.deny_dirs").code == 0
    while "Old/Pasture.md" not in daemon.search("heifer"):
        daemon.wait_for("changes")


def test_a_broken_file_keeps_the_last_good_settings_and_says_so(daemon: Living) -> None:
    set_by_hand(daemon.home, "security.sensitive_policy", "withhold")
    assert "40 dollars" not in json.dumps(debts(daemon)["data"])
    file = daemon.home / "config.json"
    good = file.read_bytes()
    for broken in (b'{"vault_path": ', b"\xff", b"[]", b'{"vault_pth": 1}', b"{}", None):
        file.unlink() if broken is None else file.write_bytes(broken)
        answer = daemon.call("status")
        assert (answer["status"], answer["error"]["code"]) == ("degraded", "CONFIG_INVALID")
        assert str(file) in answer["error"]["message"]
        assert "40 dollars" not in json.dumps(debts(daemon)["data"])
    file.write_bytes(good)
    assert daemon.call("status")["error"] is None


def test_settings_from_the_environment_win_over_a_changed_file(
    vault: Path, home: Path, cli: Cli
) -> None:
    with living({"OBSIDIAN_RAG_SECURITY__SENSITIVE_POLICY": "withhold"}) as daemon:
        daemon.index()
        set_by_hand(home, "security.sensitive_policy", "flag")
        set_by_hand(home, "indexing.max_file_mb", 3)
        assert debts(daemon)["error"]["code"] == "SENSITIVE_FILTERED"
        asked = cli("status", "--json")
        assert "security.sensitive_policy" in asked.err
        assert asked.json["data"]["is_watching"] is None


def test_the_watcher_the_scan_and_the_worker_take_up_what_concerns_them(
    make_vault: MakeVault, configure: Configure, home: Path
) -> None:
    root = make_vault(NOTES)
    slow = {"watcher.debounce_s": 60.0, "watcher.collect_s": 600.0, "watcher.reconcile_s": 9000}
    configure(root, {**slow, "server.probe_s": 9000})
    with living() as daemon:
        daemon.index()
        while not daemon.call("status")["data"]["is_watching"]:
            continue
        for name in ("watcher.debounce_s", "watcher.collect_s"):
            set_by_hand(home, name, 0)
        set_by_hand(home, "indexing.file_patterns", ["*.md", "*.txt"])
        while "Draft.txt" not in daemon.search("kelp"):
            daemon.wait_for("changes")
        while not daemon.call("status")["data"]["is_watching"]:
            continue
        (root / "New.txt").write_text("Barnacles on the hull.\n")
        while "New.txt" not in daemon.search("barnacles"):
            daemon.wait_for("changes")


def test_what_needs_a_restart_is_said_by_config_set_by_status_and_by_answers(
    daemon: Living, cli: Cli
) -> None:
    done = cli("config", "set", "server.max_requests_per_s", "400")
    assert "takes effect after `obsidian-rag serve --detach`" in done.err
    status = daemon.call("status")
    assert status["data"]["restart_needed"] == ["server.max_requests_per_s"]
    answer = debts(daemon)
    assert (answer["status"], answer["data"]["results"][0]["source_file"]) == (
        "degraded",
        "Debts.md",
    )
    assert "serve --detach" in answer["error"]["suggestion"]
    assert "server.max_requests_per_s" in cli("status").out
    cli("config", "unset", "server.max_requests_per_s")
    assert daemon.call("status")["error"] is None


def test_what_needs_a_reindex_is_said_by_config_set_by_status_and_by_answers(
    daemon: Living, cli: Cli
) -> None:
    done = cli("config", "set", "embedding.provider", "builtin")
    assert "Run `obsidian-rag reindex`" in done.err
    said = "The index was built with hash; the settings now say builtin."
    for envelope in (debts(daemon), daemon.call("status")):
        assert (envelope["status"], envelope["error"]["code"]) == ("degraded", "EMBEDDING_MISMATCH")
        assert envelope["error"]["message"] == said
        assert 'with mode "reindex"' in envelope["error"]["suggestion"]
    assert debts(daemon)["data"]["results"][0]["source_file"] == "Debts.md"
    assert cli("reindex").code == 0
    assert debts(daemon)["error"] is None
    # The next test finds the index as it was.
    set_back(daemon)
    assert cli("reindex").code == 0


def test_livesync_starts_and_stops_with_its_setting(daemon: Living, cli: Cli) -> None:
    for name, value in (
        ("couchdbUrl", "http://127.0.0.1:9"),
        ("dbName", "notes"),
        ("enabled", "true"),
    ):
        assert cli("config", "set", f"livesync.{name}", value).code == 0
    daemon.wait_for("livesync", code="LIVESYNC_UNREACHABLE")
    assert cli("config", "set", "livesync.enabled", "false").code == 0
    daemon.wait_for("livesync", code=None)


@pytest.fixture
def held() -> Iterator[tuple[FakeOllama, threading.Event]]:
    """An embedding server that answers when `release` is set, and whether it was asked."""
    with fake_ollama() as server:
        vectors, asked = server.on_embed, threading.Event()

        def wait(request: dict[str, object]) -> object:
            asked.set()
            server.release.wait(PATIENCE_S)
            return vectors(request)

        server.on_embed = wait  # type: ignore[assignment]
        yield server, asked


def test_a_run_under_way_goes_on_with_the_new_rules(
    make_vault: MakeVault,
    configure: Configure,
    home: Path,
    held: tuple[FakeOllama, threading.Event],
) -> None:
    ollama, asked = held
    notes = {f"Open/{number}.md": f"open word{number}\n" for number in range(60)}
    secret = {f"Secret/{number}.md": f"secret word{number}\n" for number in range(60)}
    root = make_vault(notes | secret)
    embedding = {
        "embedding.provider": "ollama",
        "embedding.base_url": ollama.url,
        "embedding.model": "tiny",
    }
    configure(root, {**QUICK, **embedding})
    with living() as daemon:
        daemon.call("index", mode="full")
        assert asked.wait(PATIENCE_S)
        set_by_hand(home, "indexing.deny_dirs", ["Secret"])
        daemon.call("status")
        ollama.release.set()
        daemon.wait_for("job", status="completed")
        while daemon.call("status")["data"]["total_docs"] != 60:
            daemon.wait_for("job", status="completed")
        found = [path for word in ("secret", "word7", "word42") for path in daemon.search(word)]
        assert not [path for path in found if path.startswith("Secret/")]


def test_an_embedder_that_may_no_longer_be_asked_is_not_asked(
    make_vault: MakeVault, configure: Configure, home: Path
) -> None:
    root = make_vault(NOTES)
    configure(
        root,
        {
            **QUICK,
            "embedding.provider": "ollama",
            "embedding.base_url": "http://192.0.2.10:11434",
            "embedding.external_consent": True,
            "security.local_only": False,
            "embedding.timeout_s": 0.2,
        },
    )
    with living() as daemon:
        set_by_hand(home, "security.local_only", True)
        answer = daemon.call("status")
        assert answer["error"]["code"] in ("SECURITY_VIOLATION", "INDEX_NOT_FOUND")
        job = daemon.call("index", mode="full")["data"]["job_id"]
        failed = daemon.wait_for("job", id=job, status="failed")
        assert failed["error"]["code"] == "SECURITY_VIOLATION"
