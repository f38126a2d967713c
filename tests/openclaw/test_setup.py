"""From nothing to an answer, by doing what each message says."""

import json
from pathlib import Path
from typing import Any

from tests.openclaw.gateway import NEEDS_OPENCLAW, Place, gateway
from tests.waiting import until

from obsidian_rag.config import read_file

pytestmark = NEEDS_OPENCLAW


def test_each_message_leads_to_the_next_step_until_the_vault_answers(tmp_path: Path) -> None:
    place = Place(
        tmp_path / "place",
        plugin_config={"command": "/nowhere/obsidian-rag"},
        extra={"tools": {"profile": "coding"}},
    )
    place.write_note("Garden.md", "# Garden\nFerns like the shade.\n")
    place.write_config()
    with gateway(place) as one:

        def told(code: str) -> Any:
            """The error, once the gateway has taken up the new settings."""

            def error() -> Any:
                status, answer = one.invoke("obsidian_rag_status", {})
                if status != 200:  # the old plugin is gone, and the new one not there yet
                    return None
                found = json.loads(answer["result"]["content"][0]["text"])["error"]
                return found if found is not None and found["code"] == code else None

            return until(error, code)

        missing = told("NOT_INSTALLED")
        assert missing["message"].startswith("obsidian-rag is not installed")
        assert "`pipx install ./obsidian-rag`" in missing["suggestion"]

        place.set_plugin_config({"home": "~/data"})
        assert "obsidian-rag init --vault" in told("CONFIG_INVALID")["suggestion"]

        place.set_plugin_config({"home": "~/data", "vaultPath": str(place.vault)})
        assert told("INDEX_NOT_FOUND")["message"] == "There is no index yet."
        assert read_file(place.user / "data" / "config.json")["vault_path"] == str(place.vault)

        one.index()
        assert one.found("ferns") == ["Garden.md"]


def test_without_autostart_the_message_says_what_to_run(tmp_path: Path) -> None:
    place = Place(tmp_path / "place", plugin_config={"autoStart": False})
    place.configure_engine({})
    place.write_config()
    with gateway(place) as one:
        refused = one.ask("status")
        assert refused["data"] is None
        assert "obsidian-rag serve --detach" in refused["error"]["suggestion"]
        assert place.daemon() is None
