from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.embed.embedding_doubles import Answer, FakeOllama, error, fake_ollama

from obsidian_rag.embed.hashing import HashEmbedder
from obsidian_rag.errors import ObsidianRagError, OllamaUnreachable
from obsidian_rag.index import Mode
from obsidian_rag.index.run import IndexRun, RunParts

if TYPE_CHECKING:
    from tests.index.conftest import World


def use(world: "World", server: FakeOllama) -> None:
    world.settings["embedding"] = {"provider": "ollama", "model": "tiny", "base_url": server.url}


def test_ollama_down_at_the_start_leaves_nothing_behind(world: "World") -> None:
    world.write({"a.md": "alpha"})
    with fake_ollama() as server:
        use(world, server)
    with pytest.raises(OllamaUnreachable):
        world.run()
    # Another embedder can be chosen without a reindex.
    world.settings["embedding"] = {"provider": "hash"}
    assert world.run().indexed_files == 1


def test_an_embedder_that_fails_half_way_keeps_what_was_done(world: "World") -> None:
    world.write({f"{number:04}.md": f"note number {number}" for number in range(600)})
    with fake_ollama() as server:
        use(world, server)

        def fail_later(request: dict[str, Any]) -> Answer:
            if len(server.requests) > 6:
                return error(404, "model 'tiny' not found")
            return server.vectors(request)

        server.on_embed = fail_later
        with pytest.raises(ObsidianRagError):
            world.run()
        before = len(server.inputs)
        server.on_embed = server.vectors
        result = world.run()
        embedded_again = sum(len(texts) for texts in server.inputs[before:])
    assert result.indexed_files == 600
    assert embedded_again < 600
    assert len(world.texts()) == 600


def test_a_text_the_model_refuses_fails_its_note_only_and_is_tried_again(world: "World") -> None:
    world.write({"good.md": "fine words", "poison.md": "poison", "other.md": "more words"})
    with fake_ollama() as server:
        use(world, server)

        def refuse(request: dict[str, Any]) -> Answer:
            if any("poison" in text for text in request["input"]):
                return error(400, "failed to embed: NaN")
            return server.vectors(request)

        server.on_embed = refuse
        first = world.run()
        assert [item.file for item in first.tally.errors] == ["poison.md"]
        assert (first.indexed_files, first.exit_code) == (2, 1)
        server.on_embed = server.vectors
        second = world.run()
    assert (second.indexed_files, second.exit_code) == (3, 0)


class Abroad(HashEmbedder):
    """An embedder on another machine, which remembers what it was sent."""

    is_external = True

    def __init__(self) -> None:
        super().__init__(32)
        self.sent: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.sent += texts
        return super().embed_documents(texts)


def test_comments_are_never_sent_abroad_and_are_found_all_the_same(world: "World") -> None:
    long = "".join(f"hidden{n} words of a comment.\n\n" for n in range(200))
    world.write(
        {
            "inline.md": "Roses %%hush one%% need water. %% hush\ntwo %% Tulips too.",
            "heading.md": "# Plan %%hush three%%\n\nDig a pond.",
            "block.md": f"Before it.\n\n%%\n{long}%%\n\nAfter it. " + "More words here. " * 200,
            "open.md": "Begin here.\n\n%% hush four\n\n" + "hush five. " * 400,
            "line.md": "x " * 900
            + "%%"
            + "hush six " * 300
            + "%% mid %%"
            + "hush six " * 300
            + "%%",
            "code.md": "Some text stays.\n\n```python\n%%time\n```\n\nIt goes on.",
            "span.canvas": '{"nodes": [{"id": "1", "type": "text", "text": "Card %%hush%% end"}]}',
        }
    )
    embedder = Abroad()
    engine = world.engine()
    place = replace(
        RunParts.of(engine.parts, engine.vaults.remember_primary(), None), embedder=embedder
    )
    IndexRun(place, lambda _: None, lambda: False).run(Mode.SYNC)
    engine.close()
    sent = "\n".join(embedder.sent)
    for shown in ("Roses", "water", "Tulips", "pond", "More words", "Some text", "goes on", "Card"):
        assert shown in sent
    assert "hush" not in sent
    assert "hidden" not in sent
    assert any("hush one" in text for _, text in world.texts())


def test_sensitive_passages_and_private_notes_are_never_sent_abroad(world: "World") -> None:
    world.write(
        {
            "harmless.md": "The garden needs rain.",
            "debt.md": "I owe Bo forty crowns.",
            "private.md": "---\nrag: private\n---\nNobody reads this.",
            "journal.md": "#mentalhealth\nA low day.\n\n#work\nShipped the release.",
            "people.md": "## Relations\n\n"
            + "Long text. " * 40
            + "\n\n### Mum\n\nWe argued again.",
        }
    )
    embedder = Abroad()
    engine = world.engine()
    place = replace(
        RunParts.of(engine.parts, engine.vaults.remember_primary(), None), embedder=embedder
    )
    IndexRun(place, lambda _: None, lambda: False).run(Mode.SYNC)
    engine.close()
    sent = "\n".join(embedder.sent)
    assert "garden" in sent
    assert "Shipped" in sent
    for secret in ("owe", "Nobody", "low day", "argued"):
        assert secret not in sent
    assert len(world.texts()) >= 6
