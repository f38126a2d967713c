"""The client over TLS: which certificates it trusts, and that a feed over it can be left."""

import contextlib
import datetime
import ipaddress
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.waiting import PATIENCE_S, until

from obsidian_rag.errors import LivesyncUnreachable
from obsidian_rag.livesync.couchdb.couch import Couch
from obsidian_rag.livesync.couchdb.remote import Remote


class QuietCouch(BaseHTTPRequestHandler):
    """Knows one database and tells of one change, then nothing more."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if "_changes" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            row = b'{"seq":"1","id":"a.md","changes":[{"rev":"1-a"}]}\n'
            self.wfile.write(b"%x\r\n%s\r\n" % (len(row), row))
            # Until the client leaves, who has nothing more to say.
            self.rfile.read(1)
            self.close_connection = True
        else:
            self.send_header("Content-Length", "19")
            self.end_headers()
            self.wfile.write(b'{"db_name":"notes"}')

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that signed itself, in a file with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "home server")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


@pytest.fixture
def remote(certificate: Path) -> Iterator[Remote]:
    """A database behind TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), QuietCouch) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield Remote(f"https://127.0.0.1:{server.server_port}", "notes", "alice", "secret")
        server.shutdown()
        thread.join(PATIENCE_S)


def test_a_certificate_of_an_unknown_authority_is_not_trusted(remote: Remote) -> None:
    with contextlib.closing(Couch(remote)) as couch, pytest.raises(LivesyncUnreachable) as caught:
        couch.info()
    assert "certificate" in caught.value.message


def test_a_certificate_that_this_machine_trusts_is_enough(
    remote: Remote, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with contextlib.closing(Couch(remote)) as couch:
        assert couch.info() == {"db_name": "notes"}


def test_a_certificate_for_another_name_is_not_trusted(
    remote: Remote, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    elsewhere = Remote(remote.url.replace("127.0.0.1", "localhost"), "notes", "alice", "secret")
    with contextlib.closing(Couch(elsewhere)) as couch, pytest.raises(LivesyncUnreachable):
        couch.info()


def test_stop_ends_a_feed_over_tls_at_once(
    remote: Remote, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    stop = threading.Event()
    # Neither a heartbeat nor a silence ends the feed: they come later than anybody waits.
    patient = Couch(remote, timeout_s=2 * PATIENCE_S, heartbeat_s=2 * PATIENCE_S)
    with contextlib.closing(patient) as couch:
        rows = couch.follow("0", stop)
        change = next(row for row in rows if row is not None)
        assert (change.id, change.seq) == ("a.md", "1")
        assert next(rows) is None
        began = time.monotonic()
        stop.set()
        assert list(rows) == []
        assert time.monotonic() - began < PATIENCE_S
    until(lambda: "livesync-feed" not in [one.name for one in threading.enumerate()])
