"""Tokens for agents: who may ask over HTTP, and what is there for them.

Threat: whoever reads the data folder's backup must not be able to ask. Only a digest of a token is
kept; the token is shown once. It has 256 random bits, so a plain digest tells nothing of it.
"""

import contextlib
import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field

from obsidian_rag.config import write_atomically
from obsidian_rag.errors import ConfigInvalid, InvalidArgument, NotFound
from obsidian_rag.notes import Scope
from obsidian_rag.store import now, own_folder

_FILE = "tokens.json"
_LOCK = "tokens.lock"
_PREFIX = "orag_"
_LONGEST_NAME = 60


class AgentToken(BaseModel):
    """A token that was given out, as the file has it: without the token itself."""

    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True)

    name: str
    sha256: str = Field(repr=False)
    vaults: tuple[str, ...] | None
    folders: tuple[str, ...] | None
    is_read_only: bool = Field(alias="read_only")
    created_at: str

    @property
    def scope(self) -> Scope:
        """The vaults and folders that it opens."""
        return Scope(self.vaults, self.folders)


class _TokenFile(BaseModel):
    tokens: tuple[AgentToken, ...]


class Tokens:
    """The tokens of one data folder; whoever asks sees what another process has just changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = home / _FILE
        self._seen: tuple[int, int, int] | None = None
        self._by_digest: Mapping[str, AgentToken] = {}

    def all(self) -> list[AgentToken]:
        """Every token, in the order in which they were made.

        Raises:
            ConfigInvalid: the file is damaged.
        """
        return list(self._read().values())

    def find(self, token: str) -> AgentToken | None:
        """What is kept of this token; None if it was never given out, or was revoked.

        Raises:
            ConfigInvalid: the file is damaged.
        """
        try:
            found = self._file.stat()
            seen = found.st_mtime_ns, found.st_size, found.st_ino
        except OSError:
            return None
        if seen != self._seen:
            self._by_digest = self._read()
            self._seen = seen
        return self._by_digest.get(_digest(token))

    def create(self, name: str, scope: Scope, *, is_read_only: bool) -> str:
        """Make a token; this is the only time that it is shown.

        Raises:
            InvalidArgument: the name is taken, empty or too long.
            ConfigInvalid: the file is damaged.
        """
        name = name.strip()
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise InvalidArgument(
                f"A token's name has 1 to {_LONGEST_NAME} printable characters.",
                "Name it after the agent that will use it.",
            )
        token = _PREFIX + secrets.token_urlsafe(32)
        with self._changing() as known:
            if any(one.name == name for one in known.values()):
                raise InvalidArgument(
                    f"There is a token called '{name}' already.",
                    f"Choose another name, or run `obsidian-rag token revoke {name}` first.",
                )
            known[_digest(token)] = AgentToken(
                name=name,
                sha256=_digest(token),
                vaults=scope.vaults,
                folders=scope.folders,
                is_read_only=is_read_only,
                created_at=now(),
            )
        return token

    def revoke(self, name: str) -> None:
        """Let a token be worth nothing from now on.

        Raises:
            NotFound: there is none of this name.
            ConfigInvalid: the file is damaged.
        """
        with self._changing() as known:
            digest = next((key for key, one in known.items() if one.name == name), None)
            if digest is None:
                raise NotFound(f"No token is called '{name}'.", "See `obsidian-rag token list`.")
            del known[digest]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, AgentToken]]:
        """The tokens by digest, to change; kept if nothing is raised."""
        own_folder(self._home)
        with FileLock(self._home / _LOCK):
            known = self._read()
            yield known
            written = _TokenFile(tokens=tuple(known.values())).model_dump(by_alias=True)
            # The temporary file is made with mode 0600, and the rename keeps it.
            write_atomically(self._file, json.dumps(written, indent=2) + "\n")

    def _read(self) -> dict[str, AgentToken]:
        try:
            found = _TokenFile.model_validate_json(self._file.read_bytes())
            return {one.sha256: one for one in found.tokens}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            # Not an empty list: what is written next would forget every token.
            raise ConfigInvalid(
                f"{self._file} cannot be read.", "Remove it, and make the tokens anew."
            ) from None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
