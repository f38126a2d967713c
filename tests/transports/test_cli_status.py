"""status and doctor: every file that is not searchable is named, with its reason."""

import pytest
from tests.fixture_types import Cli, Configure, MakeVault


def test_status_before_the_first_index_says_what_to_do(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({"a.md": "text"}), {})
    done = cli("status")
    assert done.code == 0
    assert "INDEX_NOT_FOUND" in done.out
    assert "obsidian-rag index" in done.out


def test_status_without_a_vault_is_fatal(cli: Cli) -> None:
    done = cli("status", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")
    assert done.json["status"] == "unavailable"


def test_status_names_every_skipped_and_failed_file_with_its_reason(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    vault = make_vault(
        {
            "good.md": "text",
            "bad.md": b"\xff",
            "Large.md": "x" * 5000,
            "never.md": "---\nrag: false\n---\nsecret",
            "torn.md": "---\ntags: [a\n---\ntext",
        }
    )
    configure(vault, {"indexing.max_file_mb": 0.002})
    assert cli("index").code == 1
    done = cli("status")
    rows = {line.split(":")[0].split()[-1]: line for line in done.out.splitlines() if ".md" in line}
    assert set(rows) == {"bad.md", "Large.md", "never.md", "torn.md"}
    assert rows["bad.md"].split() == ["failed", "bad.md:", "not_utf8"]
    assert rows["Large.md"].split() == ["skipped", "Large.md:", "too_large"]
    assert rows["never.md"].split() == ["skipped", "never.md:", "rag_false"]
    assert rows["torn.md"].split()[:2] == ["warning", "torn.md:"]
    figures = dict(line.split(maxsplit=1) for line in done.out.splitlines()[:4])
    healthy = "healthy: all that can be read; 2 files left out"
    assert figures == {"health": healthy, "vault": str(vault), "notes": "2", "chunks": "2"}
    assert cli("status", "--json").json["data"]["left_out_files"] == 2
    assert f"health       {healthy}\n" in cli("doctor").out
    files = [notice["file"] for notice in cli("status", "--json").json["data"]["notices"]]
    assert files == ["Large.md", "bad.md", "never.md", "torn.md"]


def test_status_shows_twenty_files_and_all_of_them_on_request(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({f"bad {number:02}.md": b"\xff" for number in range(30)}), {})
    cli("index")
    assert cli("status").out.count("not_utf8") == 20
    assert "10 more" in cli("status").out
    assert cli("status", "--all").out.count("not_utf8") == 30


def test_status_counts_what_waits(cli: Cli, make_vault: MakeVault, configure: Configure) -> None:
    configure(make_vault({"a.md": "text"}), {})
    cli("index")
    make_vault({"b.md": "new", "c.md": "new"})
    assert cli("status", "--json").json["data"]["unindexed_files"] == 2


def test_doctor_finds_nothing_in_a_good_installation(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({"a.md": "text"}), {})
    cli("index")
    done = cli("doctor", "--deep")
    assert done.code == 0, done.out
    assert [line.split()[0] for line in done.out.splitlines()] == ["ok"] * 17


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["text", "json"])
def test_doctor_ends_with_2_when_there_is_a_problem(
    cli: Cli, make_vault: MakeVault, configure: Configure, flags: tuple[str, ...]
) -> None:
    vault = make_vault({"a.md": "text"})
    configure(vault, {})
    cli("index")
    vault.rename(vault.with_name("elsewhere"))
    done = cli("doctor", *flags)
    assert done.code == 2
    if flags:
        verdicts = {item["check"]: item["verdict"] for item in done.json["data"]["findings"]}
        assert (verdicts["vault"], verdicts["index"]) == ("problem", "ok")
    else:
        assert "PROBLEM  vault" in done.out
