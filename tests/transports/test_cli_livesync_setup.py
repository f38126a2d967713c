"""`livesync setup` keeps nothing before it has seen the database, and shows no secret."""

import io
import json
import stat
import subprocess
from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.livesync.keyrings import MemoryKeyring
from tests.livesync.setup_uris import qr_address, settings_of, setup_uri
from tests.transports.command_line import COMMAND, on_terminal
from tests.transports.livesync_site import PASSPHRASE, URI_PASSPHRASE, device_of, forms_of
from tests.waiting import PATIENCE_S

from obsidian_rag.config import load, read_file
from obsidian_rag.livesync import Tweaks
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.milestone import MILESTONE_NAME
from obsidian_rag.livesync.secrets import SecretStore
from obsidian_rag.livesync.site import place_of, site_of

HIDDEN = Tweaks(encrypt=True, use_path_obfuscation=True)

pytestmark = pytest.mark.usefixtures("no_keyring", "livesync_secrets")


def uri_of(remote: Remote, **others: object) -> str:
    given = {"encrypt": True, "passphrase": PASSPHRASE, "usePathObfuscation": True, **others}
    return setup_uri(settings_of(remote, **given), URI_PASSPHRASE)


def by_address(remote: Remote, vault: Path) -> list[str]:
    return [
        *("livesync", "setup", "--url", remote.url, "--db", remote.database),
        *("--user", remote.user or "", "--password-env", "COUCH_PASSWORD", "--vault", str(vault)),
    ]


def shows_no_secret(remote: Remote, *texts: str) -> None:
    for text in texts:
        for secret in (remote.password or "", PASSPHRASE, URI_PASSPHRASE):
            assert [form for form in forms_of(secret) if form in text] == []


def is_untouched(home: Path) -> bool:
    return not (home / "config.json").exists() and not (home / "livesync-secrets.json").exists()


def test_a_setup_uri_is_enough(
    cli: Cli, remote: Remote, make_vault: MakeVault, home: Path, tmp_path: Path
) -> None:
    device = device_of(tmp_path / "device", remote, HIDDEN, PASSPHRASE)
    device.write("a.md", "x\n")
    device.write("gone.md", "x\n")
    device.sync()
    (device.root / "gone.md").unlink()
    device.sync()
    vault = make_vault({})
    before = device.couch.info()
    done = cli(
        "livesync", "setup", uri_of(remote), "--passphrase-env", "URI_PASSPHRASE",
        "--vault", str(vault),
    )  # fmt: skip
    assert done.code == 0, done.err
    told = dict(line.split(None, 1) for line in done.out.splitlines())
    assert told["server"] == remote.url
    assert told["database"] == remote.database
    assert "(headless)" in told["devices"]
    assert (told["encrypted"], told["notes"]) == ("end to end, paths too", "1")
    assert told["secrets"] == "in a file"
    shows_no_secret(remote, done.out, done.err, (home / "config.json").read_text())
    assert stat.S_IMODE((home / "livesync-secrets.json").stat().st_mode) == 0o600
    assert device.couch.info() == before, "setup wrote to the database"
    assert cli("livesync", "run", "--once").code == 0
    assert (vault / "a.md").read_text() == "x\n"
    device.close()


def test_a_qr_address_needs_no_passphrase_and_can_come_from_stdin(
    remote: Remote, make_vault: MakeVault, tmp_path: Path, home: Path
) -> None:
    device_of(tmp_path / "device", remote, HIDDEN, PASSPHRASE).close()
    settings = settings_of(remote, encrypt=True, passphrase=PASSPHRASE, usePathObfuscation=True)
    vault = make_vault({})
    done = subprocess.run(
        [*COMMAND, "livesync", "setup", "-", "--vault", str(vault)],
        input=qr_address(settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    shows_no_secret(remote, done.stdout, done.stderr)
    site = site_of(load())
    assert (site.remote.password, site.passphrase) == (remote.password, PASSPHRASE)


def test_the_passphrase_is_asked_without_showing_it(
    remote: Remote, make_vault: MakeVault, tmp_path: Path
) -> None:
    device_of(tmp_path / "device", remote, HIDDEN, PASSPHRASE).close()
    vault = make_vault({})
    done = on_terminal(
        "livesync", "setup", uri_of(remote), "--vault", str(vault),
        answers=[("Passphrase of the setup URI", URI_PASSPHRASE)],
    )  # fmt: skip
    assert done.code == 0, done.err
    shows_no_secret(remote, done.err)
    assert site_of(load()).passphrase == PASSPHRASE


def test_an_address_is_enough_and_what_is_missing_is_asked(
    remote: Remote, make_vault: MakeVault, tmp_path: Path
) -> None:
    device_of(tmp_path / "device", remote, Tweaks(encrypt=True), PASSPHRASE).close()
    vault = make_vault({})
    done = on_terminal(
        "livesync", "setup", "--url", remote.url, "--db", remote.database,
        "--user", remote.user or "", "--vault", str(vault),
        answers=[("Password of", remote.password or ""), ("Passphrase of your notes", PASSPHRASE)],
    )  # fmt: skip
    assert done.code == 0, done.err
    shows_no_secret(remote, done.err)
    site = site_of(load())
    assert (site.remote.password, site.passphrase) == (remote.password, PASSPHRASE)


def test_all_can_come_from_variables(
    cli: Cli, remote: Remote, make_vault: MakeVault, tmp_path: Path
) -> None:
    device_of(tmp_path / "device", remote, Tweaks(encrypt=True), PASSPHRASE).close()
    arguments = [*by_address(remote, make_vault({})), "--passphrase-env", "NOTES_PASSPHRASE"]
    done = cli(*arguments, "--json")
    assert done.code == 0, done.err
    data = done.json["data"]
    assert (data["encrypted"], data["paths_hidden"], data["notes"]) == (True, False, 0)
    assert (data["secrets"], data["locked"], data["empty"]) == ("file", False, False)
    shows_no_secret(remote, done.out, done.err)


def test_our_own_variables_need_not_be_named(
    cli: Cli,
    remote: Remote,
    make_vault: MakeVault,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    device_of(tmp_path / "device", remote, Tweaks(encrypt=True), PASSPHRASE).close()
    monkeypatch.setenv("OBSIDIAN_RAG_LIVESYNC_PASSWORD", remote.password or "")
    monkeypatch.setenv("OBSIDIAN_RAG_LIVESYNC_PASSPHRASE", PASSPHRASE)
    arguments = ["--url", remote.url, "--db", remote.database, "--user", remote.user or ""]
    assert cli("livesync", "setup", *arguments, "--vault", str(make_vault({}))).code == 0
    kept = SecretStore(home).get(place_of(load()).key)
    assert kept is not None
    assert (kept.password, kept.passphrase) == (remote.password, PASSPHRASE)


def test_an_unencrypted_database_needs_no_passphrase_and_none_is_stored(
    cli: Cli, remote: Remote, make_vault: MakeVault, tmp_path: Path, home: Path
) -> None:
    device_of(tmp_path / "device", remote).close()
    arguments = [*by_address(remote, make_vault({})), "--passphrase-env", "NOTES_PASSPHRASE"]
    assert cli(*arguments, "--no-encrypt").code == 0
    kept = SecretStore(home).get(place_of(load()).key)
    assert kept is not None
    assert (kept.password, kept.passphrase) == (remote.password, None)


def test_a_login_in_the_address_is_split_off(
    cli: Cli, remote: Remote, make_vault: MakeVault, tmp_path: Path, home: Path
) -> None:
    device_of(tmp_path / "device", remote).close()
    url = remote.url.replace("://", f"://{remote.user}:a-password-f%C3%B6r-tests@")
    done = cli(
        "livesync", "setup", "--url", url, "--db", remote.database, "--vault", str(make_vault({}))
    )
    assert done.code == 0, done.err
    written = (home / "config.json").read_text()
    shows_no_secret(remote, done.out, done.err, written)
    assert "f%C3%B6r" not in done.out + done.err + written
    assert read_file(home / "config.json")["livesync"]["couchdbUser"] == remote.user


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ("URI_PASSPHRASE", "LIVESYNC_PASSPHRASE"),
        ("NOTES_PASSPHRASE", "LIVESYNC_PASSPHRASE"),
        ("password", "LIVESYNC_REFUSED"),
        ("database", "LIVESYNC_INCOMPATIBLE"),
        ("server", "LIVESYNC_UNREACHABLE"),
        ("uri", "INVALID_ARGUMENT"),
        ("vault", "NOT_FOUND"),
    ],
)
def test_nothing_is_kept_when_something_is_wrong(
    cli: Cli,
    remote: Remote,
    make_vault: MakeVault,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong: str,
    code: str,
) -> None:
    device = device_of(tmp_path / "device", remote, HIDDEN, PASSPHRASE)
    device.write("a.md", "x\n")
    device.sync()
    device.close()
    vault = str(tmp_path / "nowhere") if wrong == "vault" else str(make_vault({}))
    others: dict[str, str] = {
        "NOTES_PASSPHRASE": {"passphrase": "another"},
        "password": {"couchDB_PASSWORD": "another"},
        "database": {"couchDB_DBNAME": "another"},
        "server": {"couchDB_URI": "http://127.0.0.1:9"},
    }.get(wrong, {})
    uri = "obsidian://open?vault=x" if wrong == "uri" else uri_of(remote, **others)
    if wrong == "URI_PASSPHRASE":
        monkeypatch.setenv("URI_PASSPHRASE", "another")
    arguments = ("--passphrase-env", "URI_PASSPHRASE", "--vault", vault, "--json")
    done = cli("livesync", "setup", uri, *arguments)
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert done.json["error"]["suggestion"]
    assert is_untouched(home)
    shows_no_secret(remote, done.out, done.err)


def test_a_server_elsewhere_is_asked_about_and_consent_is_kept_for_it_only(
    cli: Cli, remote: Remote, make_vault: MakeVault, home: Path, tmp_path: Path
) -> None:
    away = uri_of(remote, couchDB_URI="http://couch.invalid:5984")
    arguments = ("--passphrase-env", "URI_PASSPHRASE", "--vault", str(make_vault({})))
    done = cli("livesync", "setup", away, *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "LIVESYNC_REFUSED")
    assert "--consent" in done.json["error"]["suggestion"]
    done = cli("livesync", "setup", away, *arguments, "--consent", "--json")
    assert done.json["error"]["code"] == "LIVESYNC_UNREACHABLE", "it would have been asked"
    assert is_untouched(home)
    asked = on_terminal("livesync", "setup", away, *arguments, answers=[("May your notes", "n")])
    assert (asked.code, "LIVESYNC_REFUSED" in asked.err) == (2, True)
    device_of(tmp_path / "device", remote, HIDDEN, PASSPHRASE).close()
    assert cli("livesync", "setup", uri_of(remote), *arguments, "--consent").code == 0
    assert load().settings.livesync.remote_consent is False, "this machine needs none"


def test_a_password_from_before_does_not_win_over_the_new_one(
    cli: Cli,
    remote: Remote,
    make_vault: MakeVault,
    configure: Configure,
    tmp_path: Path,
    home: Path,
) -> None:
    device_of(tmp_path / "device", remote).close()
    vault = make_vault({})
    configure(vault, {"livesync.couchdbPassword": "old", "livesync.trash_days": 5})
    assert cli(*by_address(remote, vault)).code == 0
    written = read_file(home / "config.json")["livesync"]
    assert ("couchdbPassword" in written, written["trash_days"]) == (False, 5)
    assert site_of(load()).remote.password == remote.password


def test_setting_up_the_same_database_again_needs_only_what_has_changed(
    cli: Cli, remote: Remote, make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = device_of(tmp_path / "device", remote, Tweaks(encrypt=True), PASSPHRASE)
    device.write("a.md", "x\n")
    device.sync()
    device.close()
    arguments = [*by_address(remote, make_vault({})), "--passphrase-env", "NOTES_PASSPHRASE"]
    assert cli(*arguments).code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert cli("livesync", "setup").code == 0
    assert site_of(load()).passphrase == PASSPHRASE
    monkeypatch.setenv("NOTES_PASSPHRASE", "another")
    done = cli("livesync", "setup", "--passphrase-env", "NOTES_PASSPHRASE", "--json")
    assert done.json["error"]["code"] == "LIVESYNC_PASSPHRASE"
    assert site_of(load()).passphrase == PASSPHRASE
    asked = on_terminal("livesync", "setup", answers=[("Password of admin", "wrong")])
    assert (asked.code, "LIVESYNC_REFUSED" in asked.err) == (2, True)


def test_the_vault_is_chosen_for_everything_or_for_sync_only(
    cli: Cli, remote: Remote, make_vault: MakeVault, tmp_path: Path, home: Path
) -> None:
    device_of(tmp_path / "device", remote).close()
    vault = make_vault({})
    done = cli(*by_address(remote, vault)[:-2])
    assert "init --vault" in done.err
    assert cli(*by_address(remote, vault)).code == 0
    assert load().vault_root == vault
    other = tmp_path / "other"
    other.mkdir()
    assert cli(*by_address(remote, other)).code == 0
    assert (load().vault_root, place_of(load()).root) == (vault, other)
    assert cli(*by_address(remote, vault)).code == 0
    assert place_of(load()).root == vault


def test_a_vault_that_holds_our_own_files_is_refused(
    cli: Cli, remote: Remote, tmp_path: Path, home: Path
) -> None:
    device_of(tmp_path / "device", remote).close()
    done = cli(*by_address(remote, tmp_path), "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")
    assert is_untouched(home)


def test_a_locked_database_is_kept_with_the_next_step(
    cli: Cli, remote: Remote, make_vault: MakeVault, tmp_path: Path
) -> None:
    device = device_of(tmp_path / "device", remote, Tweaks(encrypt=True), PASSPHRASE)
    milestone = device.couch.get_local(MILESTONE_NAME)
    assert milestone is not None
    device.couch.put_local(MILESTONE_NAME, {**milestone, "locked": True})
    arguments = by_address(remote, make_vault({}))
    assert cli(*arguments, "--json").json["error"]["code"] == "LIVESYNC_PASSPHRASE"
    done = cli(*arguments, "--passphrase-env", "NOTES_PASSPHRASE")
    assert (done.code, "livesync unlock" in done.err) == (0, True)
    assert cli("livesync", "run", "--once", "--json").json["error"]["code"] == "LIVESYNC_LOCKED"
    assert cli("livesync", "unlock").code == 0
    assert cli("livesync", "run", "--once").code == 0
    device.close()


def test_an_empty_database_is_set_up_as_the_uri_says(
    cli: Cli, remote: Remote, make_vault: MakeVault, tmp_path: Path
) -> None:
    vault = make_vault({"n.md": "x\n"})
    uri = uri_of(remote, hashAlg="sha1", enableCompression=True)
    arguments = ("--passphrase-env", "URI_PASSPHRASE", "--vault", str(vault))
    done = cli("livesync", "setup", uri, *arguments)
    assert (done.code, "--init" in done.err) == (0, True)
    refused = cli("livesync", "push", "--once", "--json")
    assert refused.json["error"]["code"] == "LIVESYNC_INCOMPATIBLE"
    assert cli("livesync", "push", "--once", "--init").code == 0
    device = device_of(tmp_path / "device", remote, passphrase=PASSPHRASE)
    tweaks = device.sync().sync.member.tweaks
    assert (tweaks.encrypt, tweaks.use_path_obfuscation) == (True, True)
    assert (tweaks.hash_alg, tweaks.enable_compression) == ("sha1", True)
    assert device.files() == {"n.md": b"x\n"}
    device.close()


def test_the_keyring_is_used_unless_told_otherwise(
    cli: Cli,
    remote: Remote,
    make_vault: MakeVault,
    tmp_path: Path,
    home: Path,
    memory_keyring: MemoryKeyring,
) -> None:
    device_of(tmp_path / "device", remote).close()
    arguments = by_address(remote, make_vault({}))
    assert cli(*arguments, "--json").json["data"]["secrets"] == "keyring"
    written = "".join(file.read_text(errors="replace") for file in home.glob("*.json"))
    shows_no_secret(remote, written)
    assert cli("livesync", "run", "--once").code == 0
    assert cli(*arguments, "--no-keyring", "--json").json["data"]["secrets"] == "file"
    assert memory_keyring.kept == {}


def test_kept_secrets_are_forgotten_and_nothing_else(
    cli: Cli,
    remote: Remote,
    make_vault: MakeVault,
    tmp_path: Path,
    home: Path,
    memory_keyring: MemoryKeyring,
) -> None:
    device_of(tmp_path / "device", remote).close()
    arguments = by_address(remote, make_vault({}))
    assert cli(*arguments).code == 0
    settings = (home / "config.json").read_bytes()
    memory_keyring.is_locked = True
    done = cli("livesync", "forget", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")
    memory_keyring.is_locked = False
    done = cli("livesync", "forget")
    assert done.code == 0
    assert f"'{remote.database}' at {remote.url}" in done.out
    shows_no_secret(remote, done.out, done.err)
    assert memory_keyring.kept == {}
    assert (home / "config.json").read_bytes() == settings
    assert SecretStore(home).get(place_of(load()).key) is None
    assert cli("livesync", "forget", "--json").json["data"]["removed_from"] is None
    assert cli(*arguments, "--no-keyring").code == 0
    assert cli("livesync", "forget", "--json").json["data"] == {
        "server": remote.url,
        "database": remote.database,
        "removed_from": "file",
    }
    shows_no_secret(remote, (home / "livesync-secrets.json").read_text())


def test_the_error_names_the_option_when_there_is_no_terminal(
    cli: Cli, remote: Remote, make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = cli("livesync", "setup", uri_of(remote), "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")
    assert "--passphrase-env" in done.json["error"]["suggestion"]
    done = cli("livesync", "setup", "--url", remote.url, "--db", "d", "--user", "u", "--json")
    assert "--password-env" in done.json["error"]["suggestion"]
    monkeypatch.delenv("COUCH_PASSWORD")
    done = cli(*by_address(remote, make_vault({})), "--json")
    assert "COUCH_PASSWORD" in done.json["error"]["message"]


def test_a_uri_and_an_address_exclude_each_other(cli: Cli, remote: Remote) -> None:
    done = cli("livesync", "setup", uri_of(remote), "--url", remote.url, "--json")
    assert done.json["error"]["code"] == "INVALID_ARGUMENT"
    assert cli("livesync", "setup", "--json").json["error"]["code"] == "CONFIG_INVALID"


def test_the_settings_show_no_password(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({}), {"livesync.couchdbPassword": "pass-w0rd"})
    for arguments in (("config", "show"), ("config", "show", "--json")):
        done = cli(*arguments)
        assert (done.code, "pass-w0rd" in done.out) == (0, False)
    assert json.loads(cli("config", "show").out)["livesync"]["couchdbPassword"]
