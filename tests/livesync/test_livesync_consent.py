"""A server outside this machine needs the user's consent."""

import pytest

from obsidian_rag.config import is_on_this_machine
from obsidian_rag.errors import LivesyncRefused
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.site import check_consent

HERE = [
    "http://127.0.0.1:5984",
    "http://127.8.9.10",
    "https://localhost:6984/couch",
    "http://LOCALHOST.",
    "http://couch.localhost:5984",
    "http://[::1]:5984",
]
ELSEWHERE = [
    "http://192.168.1.5:5984",
    "https://couch.example.com",
    "http://localhost.example.com",
    "http://127.0.0.1.example.com",
    "http://0.0.0.0:5984",
    "http://[::2]:5984",
    "http://[::ffff:127.0.0.1]:5984",
    "http://2130706433",
    "http://raspberry",
]


@pytest.mark.parametrize("url", HERE)
def test_this_machine_needs_no_consent(url: str) -> None:
    assert is_on_this_machine(url)
    check_consent(Remote(url, "notes"), has_consent=False)


@pytest.mark.parametrize("url", ELSEWHERE)
def test_another_machine_needs_it(url: str) -> None:
    assert not is_on_this_machine(url)
    with pytest.raises(LivesyncRefused) as caught:
        check_consent(Remote(url, "notes", "alice", "secret"), has_consent=False)
    assert "--consent" in caught.value.suggestion
    assert "secret" not in caught.value.message
    check_consent(Remote(url, "notes"), has_consent=True)
