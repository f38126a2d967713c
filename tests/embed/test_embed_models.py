"""Models in the data folder: added, listed, removed, downloaded."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.embed.embedding_doubles import tiny_model

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed import (
    ModelInfo,
    add_model,
    get_model,
    list_models,
    make_embedder,
    remove_model,
)
from obsidian_rag.errors import ConfigInvalid, InvalidArgument, NotFound, ProviderFailed


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A model hub that serves the files of a folder."""
    root = tmp_path / "hub"
    root.mkdir()

    class Files(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", root
    server.shutdown()
    thread.join()
    server.server_close()


def leftovers(home: Path) -> list[str]:
    return [path.name for path in (home / "models").iterdir() if path.name.startswith(".")]


def test_an_added_model_can_be_used_by_name(tmp_path: Path, home: Path) -> None:
    source = tiny_model(tmp_path / "My Model", pooling="cls", query_prefix="query ", max_tokens=64)
    info = add_model(source, home, None)
    size = sum(file.stat().st_size for file in (home / "models" / "My-Model").iterdir())
    assert info == ModelInfo("My-Model", home / "models" / "My-Model", 8, size)
    assert list_models(home) == [info]
    settings = EmbeddingSettings.model_validate({"provider": "onnx", "model": "My-Model"})
    embedder = make_embedder(settings, SecuritySettings.model_validate({}), home)
    assert (embedder.model, embedder.dimensions, embedder.max_tokens) == ("My-Model", 8, 64)
    assert embedder.embed_query("dog").shape == (8,)


def test_weights_beside_the_model_are_copied(tmp_path: Path, home: Path) -> None:
    source = tiny_model(tmp_path / "m", place="onnx/model.onnx")
    (source / "onnx" / "model.onnx_data").write_bytes(b"weights")
    info = add_model(source, home, "m")
    assert sorted(file.name for file in info.folder.iterdir()) == [
        "embedding.json",
        "model.onnx",
        "model.onnx_data",
        "tokenizer.json",
    ]


def test_a_model_that_cannot_embed_is_not_added(tmp_path: Path, home: Path) -> None:
    source = tiny_model(tmp_path / "m")
    (source / "model.onnx").write_bytes(b"broken")
    with pytest.raises(ConfigInvalid):
        add_model(source, home, "m")
    assert list_models(home) == []
    assert leftovers(home) == []


def test_a_taken_name_is_refused(tmp_path: Path, home: Path) -> None:
    source = tiny_model(tmp_path / "m")
    add_model(source, home, None)
    with pytest.raises(InvalidArgument):
        add_model(source, home, None)


@pytest.mark.parametrize("name", ["..", "../../etc", "a/b", "", "."])
def test_names_never_leave_the_models_folder(tmp_path: Path, home: Path, name: str) -> None:
    outside = home / "keep.txt"
    outside.parent.mkdir()
    outside.write_text("mine")
    with pytest.raises(NotFound):
        remove_model(name, home)
    assert outside.exists()


def test_name_without_usable_characters_is_refused(tmp_path: Path, home: Path) -> None:
    with pytest.raises(InvalidArgument):
        add_model(tiny_model(tmp_path / "m"), home, "...")


def test_a_removed_model_is_gone(tmp_path: Path, home: Path) -> None:
    add_model(tiny_model(tmp_path / "m"), home, None)
    remove_model("m", home)
    assert list_models(home) == []
    with pytest.raises(NotFound):
        remove_model("m", home)


def test_a_known_model_is_downloaded(hub: tuple[str, Path], home: Path) -> None:
    url, root = hub
    repository = root / "BAAI" / "bge-small-en-v1.5" / "resolve" / "main"
    tiny_model(repository, place="onnx/model.onnx")
    seen: list[tuple[str, int, int | None]] = []
    info = get_model("bge-small", home, on_progress=lambda *step: seen.append(step), hub=url)
    assert (info.name, info.dimensions) == ("bge-small", 8)
    assert {name for name, _, _ in seen} == {"model.onnx", "tokenizer.json"}
    assert all(done <= (total or 0) for _, done, total in seen)
    assert '"pooling": "cls"' in (info.folder / "embedding.json").read_text()
    assert leftovers(home) == []


def test_the_mirror_is_named_by_the_environment(
    hub: tuple[str, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, root = hub
    tiny_model(
        root / "intfloat" / "multilingual-e5-small" / "resolve" / "main",
        place="onnx/model.onnx",
    )
    # The variable is this feature's interface.
    monkeypatch.setenv("OBSIDIAN_RAG_MODEL_HUB", url)
    assert get_model("multilingual-e5-small", home).dimensions == 8


def test_a_failed_download_leaves_nothing(hub: tuple[str, Path], home: Path) -> None:
    with pytest.raises(ProviderFailed):
        get_model("e5-small", home, hub=hub[0])
    with pytest.raises(ProviderFailed):
        get_model("e5-small", home, hub="http://127.0.0.1:1")
    assert list_models(home) == []
    assert leftovers(home) == []


def test_unknown_names_are_refused(home: Path) -> None:
    with pytest.raises(NotFound):
        get_model("gpt", home)
