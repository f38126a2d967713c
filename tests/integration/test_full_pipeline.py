"""From a folder of notes to cited answers, through every door of one installation."""

import json
from pathlib import Path
from typing import Any

from tests.integration.living import QUICK, Configure, Living, living, wait_until_gone
from tests.transports.command_line import in_another_process

SAMPLE = Path(__file__).parent.parent.parent / "samples" / "vault"


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def test_index_ask_read_remember_and_recall_over_the_daemon(configure: Configure) -> None:
    before = snapshot(SAMPLE)
    configure(SAMPLE, {**QUICK, "embedding.provider": "builtin"})
    with living() as daemon:
        _through_the_tools(daemon)
        _through_the_command_line(daemon)
        pids = [daemon.process.pid, daemon.worker().pid]
        assert daemon.stop() == 0
        wait_until_gone(pids)
    assert snapshot(SAMPLE) == before


def _through_the_tools(daemon: Living) -> None:
    assert daemon.call("status")["error"]["code"] == "INDEX_NOT_FOUND"
    started = daemon.call("index", mode="full")["data"]
    assert (started["status"], daemon.call("index", mode="full")["data"]["job_id"]) == (
        "started",
        started["job_id"],
    )
    active = daemon.call("status")["data"]["active_job"]
    assert active is None or (active["id"], active["mode"]) == (started["job_id"], "full")
    ended = daemon.wait_for("job", id=started["job_id"], status="completed")
    assert ended["result"]["errors"] == []
    status = daemon.call("status")
    assert (status["status"], status["data"]["active_job"]) == ("healthy", None)
    last = status["data"]["last_job"]
    assert (last["id"], last["status"]) == (started["job_id"], "completed")
    assert last["indexed_files"] == status["data"]["total_docs"] > 60
    assert {"total_chunks", "duration_ms", "errors"} <= last.keys()
    answer = daemon.call("search", query="how much do I owe Sreenivas?")
    best = answer["data"]["results"][0]
    assert (answer["status"], best["source_file"]) == ("healthy", "Finance/Debts.md")
    assert answer["data"]["sensitive_detected"]
    note = daemon.call("read", note="Finance/Debts.md", confirm_sensitive=True)["data"]
    assert "Sreenivas" in note["text"]
    fact = {"key": "debt", "value": "1,150 dollars", "source": "Finance/Debts.md"}
    assert daemon.call("memory_store", **fact)["data"]["stored"]
    assert daemon.call("memory_recall", query="debt")["data"]["facts"][0]["value"] == fact["value"]


def _through_the_command_line(daemon: Living) -> None:
    found = in_another_process("search", "how much do I owe Sreenivas?", "--json")
    assert found.json["data"]["results"][0]["source_file"] == "Finance/Debts.md"
    shown = in_another_process("status").out
    assert "running, watching the vault" in shown
    # The daemon runs the job, so its events tell of it.
    done = in_another_process("sync")
    assert done.code == 0
    assert done.lines[-1]["type"] == "complete"
    daemon.wait_for("job", mode="sync", status="completed", requested=True)
    refused = in_another_process("read", "../outside.md", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "SECURITY_VIOLATION")


def test_a_detached_daemon_is_found_used_and_stopped(configure: Configure, home: Path) -> None:
    configure(SAMPLE, QUICK)
    started = in_another_process("serve", "--detach", "--json")
    assert started.code == 0, started.err
    first: Any = started.json["data"]
    try:
        again = in_another_process("serve", "--detach", "--json").json["data"]
        assert (first["started"], again) == (True, {**first, "started": False})
        file = home / "daemon.json"
        # A changed setting that it cannot take up while it runs: it is started anew.
        configure(SAMPLE, {**QUICK, "server.max_requests_per_s": 400})
        first = in_another_process("serve", "--detach", "--json").json["data"]
        assert first["pid"] != again["pid"]
        wait_until_gone([again["pid"]])
        assert json.loads(file.read_text())["pid"] == first["pid"]
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        stopped = in_another_process("serve", "--stop", "--json")
    assert stopped.json["data"] == {"stopped": True, "pid": first["pid"]}
    wait_until_gone([first["pid"]])
    assert not file.exists()
    nothing = in_another_process("serve", "--stop", "--json").json["data"]
    assert nothing == {"stopped": False, "pid": None}
