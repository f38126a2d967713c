"""Which addresses count as this machine, and what the settings allow."""

import pytest

from obsidian_rag.config import SecuritySettings
from obsidian_rag.embed.provider_http import check_endpoint
from obsidian_rag.errors import ConfigInvalid, SecurityViolation

LOCAL = SecuritySettings.model_validate({"local_only": True})
OPEN = SecuritySettings.model_validate({"local_only": False})


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434",
        "http://LOCALHOST",
        "https://localhost./",
        "http://ollama.localhost:80",
        "http://127.0.0.1:11434",
        "http://127.8.9.10",
        "http://[::1]:11434/prefix",
    ],
)
def test_loopback_is_always_allowed(url: str) -> None:
    assert check_endpoint(url, LOCAL, consent=False) is False
    assert check_endpoint(url, OPEN, consent=False) is False


@pytest.mark.parametrize(
    "url",
    [
        "http://192.168.1.2:11434",
        "http://0.0.0.0:11434",
        "http://[::]:11434",
        "http://[::ffff:127.0.0.1]",
        "http://localhost.example.com",
        "http://notlocalhost",
        "http://127.0.0.1.nip.io",
        "http://127.1",
        "http://2130706433",
        "https://api.example.com",
    ],
)
def test_other_addresses_are_external(url: str) -> None:
    with pytest.raises(SecurityViolation):
        check_endpoint(url, LOCAL, consent=True)
    with pytest.raises(ConfigInvalid) as caught:
        check_endpoint(url, OPEN, consent=False)
    assert "external_consent" in caught.value.suggestion
    assert check_endpoint(url, OPEN, consent=True) is True


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://localhost",
        "file:///etc/passwd",
        "http://",
        "http://user:password@localhost",
        "http://user@localhost",
        "http://@localhost",
        "http://127.0.0.1\\@example.com",
        "http://localhost\n.example.com",
        "http://localhost /",
        "http://localhost:port",
        "http://localhost:99999",
        "http://[::1",
        "http://localhost/?to=http://example.com",
        "http://localhost#@example.com",
        "http://ⓛocalhost",
    ],
)
def test_strange_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigInvalid):
        check_endpoint(url, OPEN, consent=True)
