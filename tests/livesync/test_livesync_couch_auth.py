"""Tokens, names and passwords, and extra headers."""

import base64

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from jwt.types import Options

from obsidian_rag.errors import ConfigInvalid
from obsidian_rag.livesync.couchdb.remote import Bearer, Jwt, Remote, basic, parse_headers, sign

SECRET = bytes(range(64))
HMAC_KEY = base64.b64encode(SECRET).decode()
NOW = 1_800_000_000
WITHOUT_CLOCK: Options = {"verify_exp": False, "verify_iat": False}


def pem(key: PrivateKeyTypes) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize("algorithm", ["HS256", "HS512"])
def test_a_token_signed_with_a_shared_key_is_what_another_library_expects(algorithm: str) -> None:
    token = sign(Jwt(algorithm, HMAC_KEY, "alice", key_id="main"), NOW)
    claims = pyjwt.decode(token, SECRET, algorithms=[algorithm], options=WITHOUT_CLOCK)
    assert claims == {"exp": NOW + 300, "iat": NOW, "sub": "alice", "_couchdb.roles": ["_admin"]}
    assert pyjwt.get_unverified_header(token) == {"alg": algorithm, "typ": "JWT", "kid": "main"}


@pytest.mark.parametrize(
    ("algorithm", "curve"), [("ES256", ec.SECP256R1()), ("ES512", ec.SECP521R1())]
)
def test_a_token_signed_with_a_private_key_is_what_another_library_expects(
    algorithm: str, curve: ec.EllipticCurve
) -> None:
    key = ec.generate_private_key(curve)
    # Numbers that begin with zeros are rare, and must keep their width.
    for second in range(20):
        token = sign(Jwt(algorithm, pem(key), "alice"), NOW + second)
        claims = pyjwt.decode(token, public(key), algorithms=[algorithm], options=WITHOUT_CLOCK)
        assert claims["iat"] == NOW + second
    assert pyjwt.get_unverified_header(token) == {"alg": algorithm, "typ": "JWT"}


def test_a_private_key_works_without_its_line_ends_and_without_its_border() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    in_one_line = pem(key).replace("\n", " ")
    bare = "".join(pem(key).splitlines()[1:-1])
    for text in (in_one_line, bare):
        token = sign(Jwt("ES256", text, "alice"), NOW)
        pyjwt.decode(token, public(key), algorithms=["ES256"], options=WITHOUT_CLOCK)


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("HS256", "not base64 geheim!"),
        ("HS256", ""),
        ("HS256", "geheim-é"),
        ("ES256", "geheim"),
        ("ES256", base64.b64encode(b"geheim").decode()),
        ("ES256", pem(ec.generate_private_key(ec.SECP521R1()))),
        ("ES512", pem(ec.generate_private_key(ec.SECP256R1()))),
        ("ES256", pem(rsa.generate_private_key(65537, 2048))),
        ("none", HMAC_KEY),
        ("RS256", HMAC_KEY),
    ],
)
def test_a_key_that_cannot_sign_is_named_without_its_text(algorithm: str, key: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        sign(Jwt(algorithm, key, "alice"), NOW)
    said = f"{caught.value.message} {caught.value.suggestion}"
    assert "geheim" not in said
    assert caught.value.__cause__ is None


def test_a_token_is_kept_and_renewed_a_minute_before_it_ends() -> None:
    now = [float(NOW)]
    bearer = Bearer(Jwt("HS256", HMAC_KEY, "alice"), clock=lambda: now[0])
    first = bearer.authorization()
    now[0] += 239
    assert bearer.authorization() == first
    now[0] += 1
    second = bearer.authorization()
    assert second != first
    claims = pyjwt.decode(
        second.removeprefix("Bearer "), SECRET, algorithms=["HS256"], options=WITHOUT_CLOCK
    )
    assert claims["exp"] == NOW + 240 + 300


def test_a_token_that_lives_short_is_renewed_at_half_its_life() -> None:
    now = [float(NOW)]
    bearer = Bearer(Jwt("HS256", HMAC_KEY, "alice", lifetime_s=60), clock=lambda: now[0])
    first = bearer.authorization()
    now[0] += 31
    assert bearer.authorization() != first


def test_a_clock_that_is_set_back_gets_a_new_token() -> None:
    now = [float(NOW)]
    bearer = Bearer(Jwt("HS256", HMAC_KEY, "alice"), clock=lambda: now[0])
    first = bearer.authorization()
    now[0] -= 3600
    assert bearer.authorization() != first


PRINTED = st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters=":")


@given(user=st.text(PRINTED), password=st.text(PRINTED | st.just(":")))
def test_a_name_and_a_password_are_sent_in_utf8(user: str, password: str) -> None:
    name, _, word = base64.b64decode(basic(user, password).removeprefix("Basic ")).partition(b":")
    assert (name.decode(), word.decode()) == (user, password)


@pytest.mark.parametrize(("user", "password"), [("a:b", "c"), ("a\n", "c"), ("a", "c\udc80")])
def test_a_name_or_password_that_cannot_be_sent_is_refused(user: str, password: str) -> None:
    with pytest.raises(ConfigInvalid):
        basic(user, password)


def test_headers_are_read_line_by_line() -> None:
    text = "CF-Access-Client-Id: abc.access\r\n\n  X-Note :  a: b \nX-Empty:\n"
    assert parse_headers(text) == {
        "CF-Access-Client-Id": "abc.access",
        "X-Note": "a: b",
        "X-Empty": "",
    }


@pytest.mark.parametrize(
    "text",
    [
        "geheim",
        "geheim header: x",
        ": geheim",
        "X-A: geheim\x00",
        "X-A: geheim\rX-B: c",
        "X-A: geheim\x7f",
        "X-A: geheim\ud800",
        "Höst: geheim",
        "Host: geheim",
        "content-length: 5 geheim",
        "Transfer-Encoding: geheim",
    ],
)
def test_a_line_that_could_change_the_request_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_headers(f"X-Fine: yes\n{text}")
    assert "geheim" not in f"{caught.value.message} {caught.value.suggestion}"
    assert "Line 2" in caught.value.message


@given(st.text())
def test_no_text_gives_a_header_that_ends_a_line(text: str) -> None:
    try:
        headers = parse_headers(text)
    except ConfigInvalid:
        return
    for name, value in headers.items():
        assert name.isascii() and name.isprintable() and " " not in name
        assert not set(value) & {"\r", "\n", "\0"}


@pytest.mark.parametrize(
    "url",
    [
        "couch.example.com",
        "ftp://couch.example.com",
        "https://",
        "https://geheim:geheim@couch.example.com",
        "https://couch.example.com/?geheim",
        "https://couch.example.com/#geheim",
        "https://couch.example.com:port-geheim",
        "https://couch.example.com\\@geheim",
        "https://couch.example.com/\ngeheim",
        "http://localhost。geheim.example:5984",
        "http://127.0.0.１:5984/geheim",
        "https://[geheim",
    ],
)
def test_an_invalid_address_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        Remote(url, "notes")
    assert "geheim" not in f"{caught.value.message} {caught.value.suggestion}"
    assert caught.value.__cause__ is None


def test_a_database_needs_a_name_and_a_header_its_rules() -> None:
    with pytest.raises(ConfigInvalid):
        Remote("https://couch.example.com", "")
    with pytest.raises(ConfigInvalid):
        Remote("https://couch.example.com", "notes", headers={"X-A": "b\r\nX-C: d"})


def test_the_address_of_a_database_keeps_the_servers_path() -> None:
    assert Remote("https://c.example/sub/", "a/b").address == "https://c.example/sub/a%2Fb"


def test_no_secret_is_in_what_is_printed() -> None:
    jwt = Jwt("HS256", "key-geheim", "alice")
    remote = Remote("https://c.example", "notes", "alice", "geheim", {"X-Token": "geheim"}, jwt)
    assert "geheim" not in f"{remote!r} {remote} {jwt!r} {jwt}"
