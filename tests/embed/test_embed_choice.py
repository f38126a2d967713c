"""Which embedder the settings mean, and whose key goes where."""

import json
import re
from pathlib import Path

import pytest

from obsidian_rag.config import EmbeddingSettings, ModelSettings, SecuritySettings, validate
from obsidian_rag.embed import choice as choice_module
from obsidian_rag.embed import choose, make_embedder
from obsidian_rag.errors import SecurityViolation


def chosen(
    embedding: dict[str, object], model: dict[str, object] | None = None
) -> EmbeddingSettings:
    found = choose(
        EmbeddingSettings.model_validate(embedding), ModelSettings.model_validate(model or {})
    )
    assert found.notice is None
    return found.settings


def facts(settings: EmbeddingSettings) -> tuple[str, str | None, str | None, str | None]:
    return settings.provider, settings.base_url, settings.model, settings.api_key_env


OPENAI = ("openai", "https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY")
GOOGLE = "https://generativelanguage.googleapis.com/v1beta"
SAME = {"provider": "same_as_model"}


@pytest.mark.parametrize(
    ("embedding", "model", "expected"),
    [
        ({"provider": "openai"}, {}, OPENAI),
        ({"provider": "gemini"}, {}, ("gemini", GOOGLE, "gemini-embedding-2", "GEMINI_API_KEY")),
        (
            {"provider": "ollama"},
            {},
            ("ollama", "http://localhost:11434", "mxbai-embed-large", None),
        ),
        ({"provider": "builtin"}, {"provider": "openai"}, ("builtin", None, None, None)),
        (SAME, {"provider": "openai", "model": "gpt"}, OPENAI),
        (SAME, {"provider": "openai", "api_key_env": "K"}, (*OPENAI[:3], "K")),
        (
            SAME,
            {"provider": "openai", "base_url": "http://localhost:1234/v1", "api_key_env": "K"},
            ("openai", "http://localhost:1234/v1", "text-embedding-3-small", "K"),
        ),
        (
            {**SAME, "model": "nomic"},
            {"provider": "ollama", "base_url": "http://localhost:1", "model": "qwen"},
            ("ollama", "http://localhost:1", "nomic", None),
        ),
    ],
)
def test_what_is_left_out_is_filled_in(
    embedding: dict[str, object], model: dict[str, object], expected: tuple[object, ...]
) -> None:
    assert facts(chosen(embedding, model)) == expected


def test_no_key_goes_to_an_address_that_it_was_not_named_for() -> None:
    elsewhere = {"base_url": "http://localhost:1234/v1"}
    assert chosen({"provider": "openai", **elsewhere}).api_key_env is None
    model: dict[str, object] = {"provider": "openai", "api_key_env": "K"}
    assert chosen({**SAME, **elsewhere}, model).api_key_env is None
    assert chosen({**SAME, **elsewhere, "api_key_env": "L"}, model).api_key_env == "L"


@pytest.mark.parametrize("model", [{}, {"provider": "anthropic", "model": "claude"}])
def test_a_model_without_embeddings_leaves_them_to_the_builtin_one_and_says_why(
    model: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EmbeddingSettings.model_validate({**SAME, "dimensions": 1024})
    found = choose(settings, ModelSettings.model_validate(model))
    assert facts(found.settings) == ("builtin", None, None, None)
    assert str(model.get("provider", "model.provider is not set")) in (found.notice or "")
    # A Python without wordllama's files cannot be made here.
    monkeypatch.setattr(choice_module, "is_installed", lambda: False)
    found = choose(settings, ModelSettings.model_validate(model))
    assert found.settings.provider == "hash"
    assert (found.notice or "").startswith("hash ")


def test_the_model_decides_whether_text_would_leave(tmp_path: Path) -> None:
    settings = EmbeddingSettings.model_validate(SAME)
    security = SecuritySettings.model_validate({})

    def make(model: dict[str, object]) -> str:
        chat = ModelSettings.model_validate(model)
        return make_embedder(settings, security, tmp_path, chat).provider

    assert make({"provider": "anthropic"}) == "builtin"
    assert make({"provider": "ollama"}) == "ollama"
    assert make({"provider": "openai", "base_url": "http://localhost:1/v1"}) == "openai"
    for provider in ("openai", "gemini"):
        with pytest.raises(SecurityViolation):
            make({"provider": provider})


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "providers.md"
EXAMPLES = re.findall(r"```json\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_config_of_the_guide_makes_an_embedder(example: str, tmp_path: Path) -> None:
    settings = validate(json.loads(example), None)
    made = make_embedder(settings.embedding, settings.security, tmp_path, settings.model)
    assert made.provider in ("ollama", "openai", "gemini")
    assert made.is_external is not settings.security.local_only
    assert made.model == settings.embedding.model
