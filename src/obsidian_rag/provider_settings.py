"""Settings of the embedder, which makes vectors, and of the chat model.

Keys never appear here: a setting names the environment variable that holds one.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["EmbeddingSettings", "ModelSettings", "Section"]

Provider = Literal["builtin", "ollama", "onnx", "hash", "openai", "gemini", "same_as_model"]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Section(BaseModel):
    """A section of the config file."""

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        serialize_by_alias=True,
    )


class EmbeddingSettings(Section):
    """How text becomes vectors."""

    provider: Provider = Field("builtin", description="What makes the vectors")
    model: str | None = Field(
        None, description="Model name, or model folder (onnx); else the provider's default"
    )
    base_url: str | None = Field(
        None,
        description="Address of the server; else the provider's usual one",
    )
    api_key_env: Variable | None = Field(
        None,
        description="Environment variable with the key; else the usual one, without base_url only",
    )
    dimensions: int | None = Field(
        None, ge=8, le=8192, description="Vector width: asked of openai and gemini, else expected"
    )
    timeout_s: float = Field(60, gt=0, description="How long one embedding request may take")
    external_consent: bool = Field(
        False, description="With local_only off: allow sending note text to a non-loopback embedder"
    )
    bulk_consent: Literal["ollama", "openai", "gemini"] | None = Field(
        None, description="Provider that may be sent all notes without asking first"
    )
    price_per_million_tokens: float | None = Field(
        None, ge=0, description="What the provider charges, in your currency; for the estimate"
    )


class ModelSettings(Section):
    """The chat model; `embedding.provider: same_as_model` takes provider, address and key of it."""

    provider: Literal["openai", "gemini", "ollama", "anthropic"] | None = Field(
        None, description="Its provider"
    )
    model: str | None = Field(None, description="Its name")
    base_url: str | None = Field(
        None,
        description="Address of the server; else the provider's usual one",
    )
    api_key_env: Variable | None = Field(None, description="Environment variable with the key")
