"""Tokens for agents: who may use the HTTP API, and which notes they can see.

Threat: someone who reads a backup of the data folder must not gain access. Only a digest of a token
is stored; the token is shown once. It has 256 random bits, so a plain digest reveals nothing.
"""

import contextlib
import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field

from obsidian_rag.config import write_atomically
from obsidian_rag.errors import ConfigInvalid, InvalidArgument, NotFound
from obsidian_rag.notes import Scope
from obsidian_rag.store import now, own_folder, timestamp

_FILE = "tokens.json"
_LOCK = "tokens.lock"
_PREFIX = "orag_"
_MAX_NAME_CHARS = 60


class AgentToken(BaseModel):
    """An issued token as stored: without the token itself."""

    model_config = ConfigDict(frozen=True, strict=True, populate_by_name=True)

    name: str
    sha256: str = Field(repr=False)
    vaults: tuple[str, ...] | None
    folders: tuple[str, ...] | None
    is_read_only: bool = Field(alias="read_only")
    created_at: str
    expires_at: str | None = None

    @property
    def scope(self) -> Scope:
        """The vaults and folders it gives access to."""
        return Scope(self.vaults, self.folders)


class _TokenFile(BaseModel):
    tokens: tuple[AgentToken, ...]


class Tokens:
    """The tokens of one data folder; changes by other processes take effect at once."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = home / _FILE
        self._seen: tuple[int, int, int] | None = None
        self._by_digest: Mapping[str, AgentToken] = {}

    def all(self) -> list[AgentToken]:
        """Every token, the oldest first; ConfigInvalid if the file is damaged."""
        return list(self._read().values())

    def find(self, token: str) -> AgentToken | None:
        """The entry of this token; None if it was never issued, was revoked or has expired.

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
        known = self._by_digest.get(_digest(token))
        is_over = known is not None and known.expires_at is not None and known.expires_at <= now()
        return None if is_over else known

    def create(
        self, name: str, scope: Scope, *, is_read_only: bool, valid_for: timedelta | None = None
    ) -> str:
        """Create a token, which is shown only now. It never expires by default.

        Raises:
            InvalidArgument: the name is taken, empty or too long.
            ConfigInvalid: the file is damaged.
        """
        name = name.strip()
        if not name or len(name) > _MAX_NAME_CHARS or not name.isprintable():
            raise InvalidArgument(
                f"A token's name has 1 to {_MAX_NAME_CHARS} printable characters.",
                "Name it after the agent that will use it.",
            )
        token = _PREFIX + secrets.token_urlsafe(32)
        with self._editing() as known:
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
                expires_at=None if valid_for is None else timestamp(datetime.now(UTC) + valid_for),
            )
        return token

    def revoke(self, name: str) -> None:
        """Revoke a token at once.

        Raises:
            NotFound: there is no token of this name.
            ConfigInvalid: the file is damaged.
        """
        with self._editing() as known:
            digest = next((key for key, one in known.items() if one.name == name), None)
            if digest is None:
                raise NotFound(f"No token is called '{name}'.", "See `obsidian-rag token list`.")
            del known[digest]

    @contextlib.contextmanager
    def _editing(self) -> Iterator[dict[str, AgentToken]]:
        """The tokens by digest, to edit; saved unless an exception is raised."""
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
            # Not an empty list: the next write would delete every token.
            raise ConfigInvalid(
                f"{self._file} cannot be read.", "Remove it, and create the tokens again."
            ) from None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
