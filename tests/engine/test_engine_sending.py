"""Notes are sent to an embedder elsewhere only when the user has said yes, and never all of them.

0.0.0.0 is not loopback by name, so it counts as another machine, and yet it leads to this one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.embed.provider_doubles import FakeOpenAI, fake_openai

from obsidian_rag.engine import (
    Engine,
    ask,
    examine,
    health_of,
    report_status,
    run_index,
)
from obsidian_rag.errors import ConfigInvalid, EmbeddingMismatch
from obsidian_rag.index import Mode
from obsidian_rag.search import Request

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
NOTES = {
    "Garden.md": "# Garden\n\nThe roses need water in a dry summer.\n",
    "Debt.md": "I owe Bo forty crowns.\n",
    "Diary.md": "#mentalhealth\nA low day.\n\n#work\nShipped the release.\n",
    "Private.md": "---\nrag: private\n---\nNobody reads this.\n",
}
QUESTION = Request(question="roses", limit=3)


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with fake_openai() as fake:
        yield fake
        assert fake.violations == []


def outside(server: FakeOpenAI, **settings: object) -> dict[str, object]:
    return {
        "embedding.provider": "openai",
        "embedding.base_url": server.url.replace("127.0.0.1", "0.0.0.0"),
        "embedding.model": "tiny",
        "embedding.external_consent": True,
        "security.local_only": False,
        **{f"embedding.{name}": value for name, value in settings.items()},
    }


def test_no_run_begins_before_the_user_has_said_yes(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOpenAI
) -> None:
    vault = make_vault(NOTES)
    made = engine(vault, outside(server, price_per_million_tokens=20_000))
    for mode in (Mode.FULL, Mode.SYNC, Mode.REINDEX):
        with pytest.raises(ConfigInvalid) as caught:
            run_index(made, mode)
        assert "--yes" in caught.value.suggestion
    estimate = made.sending.estimate(Mode.FULL)
    assert estimate is not None
    assert server.paths == []
    made.sending.agree()
    run_index(made, Mode.FULL)
    sent = [text for batch in server.inputs for text in batch if "\n" in text]
    tokens = round(sum(len(text) for text in sent) / 4)
    assert (estimate.notes, estimate.tokens) == (2, tokens)
    assert f"about {tokens:,} tokens" in estimate.text
    assert f"cost about {tokens / 50:.2f}" in estimate.text
    assert "cost less than 0.01" in replace(estimate, price_per_million=0.02).text


def test_after_a_yes_all_goes_on_and_what_is_private_stays(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOpenAI
) -> None:
    vault = make_vault(NOTES)
    made = engine(vault, outside(server))
    made.sending.agree()
    assert run_index(made, Mode.FULL).exit_code == 0
    assert made.sending.estimate(Mode.REINDEX) is None
    sent = "\n".join(text for batch in server.inputs for text in batch)
    assert "roses" in sent
    assert "Shipped" in sent
    for secret in ("owe", "low day", "Nobody"):
        assert secret not in sent
    (vault / "New.md").write_text("Tulips come in spring.\n")
    assert run_index(made, Mode.SYNC).tally.added == 1
    found = ask(made, QUESTION)
    assert found.trouble is None
    assert server.inputs[-1] == ["roses"]
    # Words find what has no vector.
    words = [hit.source_file for hit in ask(made, Request("forty crowns", 3)).answer.hits]
    assert words[0] == "Debt.md"


def test_the_setting_that_names_the_provider_is_a_yes(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOpenAI
) -> None:
    made = engine(make_vault(NOTES), outside(server, bulk_consent="gemini"))
    assert made.sending.estimate(Mode.FULL) is not None
    made = engine(make_vault(NOTES), outside(server, bulk_consent="openai"))
    assert made.sending.estimate(Mode.FULL) is None
    assert run_index(made, Mode.FULL).exit_code == 0
    assert health_of(made).state == "healthy"


def test_another_address_is_asked_about_anew_and_not_sent_a_question(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOpenAI
) -> None:
    vault = make_vault(NOTES)
    made = engine(vault, outside(server))
    made.sending.agree()
    run_index(made, Mode.FULL)
    with fake_openai() as other:
        made = engine(vault, outside(other))
        found = ask(made, QUESTION)
        assert found.trouble is not None
        assert found.trouble.code == "CONFIG_INVALID"
        assert found.answer.hits[0].source_file == "Garden.md"
        with pytest.raises(ConfigInvalid):
            run_index(made, Mode.SYNC)
        report = report_status(made)
        assert (report.plugin_health, report.trouble and report.trouble.code) == (
            "degraded",
            "CONFIG_INVALID",
        )
        assert other.paths == []


def test_a_server_on_this_machine_needs_no_yes(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOpenAI
) -> None:
    settings = {
        "embedding.provider": "openai",
        "embedding.base_url": server.url,
        "embedding.model": "tiny",
    }
    made = engine(make_vault(NOTES), settings)
    assert run_index(made, Mode.FULL).exit_code == 0
    assert "owe" in "\n".join(text for batch in server.inputs for text in batch)


def test_another_embedder_is_a_mismatch_before_it_is_a_question(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOpenAI
) -> None:
    vault = make_vault(NOTES)
    run_index(engine(vault), Mode.FULL)
    made = engine(vault, outside(server))
    with pytest.raises(EmbeddingMismatch):
        made.sending.estimate(Mode.FULL)
    assert made.sending.estimate(Mode.REINDEX) is not None


def test_a_model_that_was_replaced_under_its_name_is_a_mismatch(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOpenAI
) -> None:
    vault = make_vault(NOTES)
    settings = {
        "embedding.provider": "openai",
        "embedding.base_url": server.url,
        "embedding.model": "tiny",
    }
    made = engine(vault, settings)
    run_index(made, Mode.FULL)
    made.close()
    server.width = 12
    found = ask(made, QUESTION)
    assert found.trouble is not None
    assert found.trouble.code == "EMBEDDING_MISMATCH"
    assert found.answer.hits[0].source_file == "Garden.md"
    (vault / "Garden.md").write_text("# Garden\n\nThe roses are dry.\n\n# Shed\n\nA new saw.\n")
    with pytest.raises(EmbeddingMismatch):
        run_index(made, Mode.SYNC)
    assert run_index(made, Mode.REINDEX).exit_code == 0
    assert ask(made, QUESTION).trouble is None


def test_an_embedder_that_stands_in_is_told_of_everywhere(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    settings = {"embedding.provider": "same_as_model", "model.provider": "anthropic"}
    made = engine(make_vault(NOTES), settings)
    assert run_index(made, Mode.FULL).exit_code == 0
    report = report_status(made)
    assert report.plugin_health == "healthy"
    assert report.embedder.startswith("builtin:")
    told = report.embedder_notice
    assert told is not None
    assert "anthropic" in told
    (found,) = [one for one in examine(made) if one.check == "embedder"]
    assert (found.verdict, told in found.message) == ("warning", True)
    assert ask(made, QUESTION).embedder_notice == told


def test_same_as_model_is_that_models_server(
    engine: MakeEngine, make_vault: MakeVault, server: FakeOpenAI
) -> None:
    settings = {
        "embedding.provider": "same_as_model",
        "model.provider": "openai",
        "model.base_url": server.url,
        "model.model": "chat",
        "embedding.dimensions": 16,
    }
    made = engine(make_vault(NOTES), settings)
    assert run_index(made, Mode.FULL).exit_code == 0
    assert made.chunks.dimensions == 16
    assert {request["model"] for request in server.requests} == {"text-embedding-3-small"}
    assert report_status(made).embedder_notice is None


def test_a_file_of_too_many_chunks_is_skipped_with_a_reason(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    many = "".join(f"# Part {number}\n\n{'word ' * 60}\n\n" for number in range(30))
    vault = make_vault({"many.md": many, "few.md": "text"})
    made = engine(vault, {"indexing.max_chunks": 5})
    assert run_index(made, Mode.FULL).tally.skipped == 1
    report = report_status(made)
    assert [(n.file, n.status, n.reason) for n in report.notices] == [
        ("many.md", "skipped", "too_many_chunks")
    ]
    assert (report.total_docs, report.unindexed_files) == (1, 0)
    assert run_index(made, Mode.SYNC).tally.skipped == 0
    made = engine(vault, {"indexing.max_chunks": 500})
    run_index(made, Mode.FULL)
    assert report_status(made).total_docs == 2
    # A note that grows too large loses the chunks it had.
    made = engine(vault, {"indexing.max_chunks": 5})
    (vault / "many.md").write_text(many + "# End\n\nmore\n")
    run_index(made, Mode.SYNC)
    assert report_status(made).total_docs == 1
    assert made.chunks.count() == report_status(made).total_chunks
    assert {one.verdict for one in examine(made, deep=True)} == {"ok"}
