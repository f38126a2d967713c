"""Which data folder a chunk store belongs to.

Two data folders that write to one store would replace each other's tables. So each store records
the id of the data folder that created it, and refuses all others. A store inside a data folder
always belongs to it. In a local folder the record is a small file; in an object store it is a table
of one row, which LanceDB creates by a conditional put: of two concurrent attempts one fails.
"""

import contextlib
import json
import uuid
from pathlib import Path

from obsidian_rag.errors import StoreForeign
from obsidian_rag.store.lance import lancedb, translate_errors

RECORD = "owner.json"
_TABLE = "obsidian_owner"
_FOLDER_ID = "folder-id"


class Ownership:
    """Ownership of one store by one data folder, `home`."""

    def __init__(self, uri: str, home: Path) -> None:
        self._uri = uri
        self._home = home

    @property
    def is_inside(self) -> bool:
        """Whether the store lies in the data folder itself."""
        return "://" not in self._uri and Path(self._uri).resolve().is_relative_to(
            self._home.resolve()
        )

    def recorded(self) -> str | None:
        """The id of the data folder that owns the store; None if there is no readable record."""
        if "://" not in self._uri:
            return _read_owner(self._record)
        with translate_errors():
            try:
                rows = lancedb().connect(self._uri).open_table(_TABLE).to_arrow().to_pylist()
            except (ValueError, FileNotFoundError) as error:
                if "not found" not in str(error):
                    raise
                return None
            return str(rows[0]["data_folder_id"]) if rows else None

    def check(self) -> None:
        """Refuse to read or write a store of another data folder.

        Raises:
            StoreForeign: it has another owner.
        """
        if self.is_inside:
            return
        owner = self.recorded()
        if owner is not None and owner != self._folder_id():
            raise self.refusal()

    def claim(self) -> None:
        """Record this data folder as the owner, unless the store has one.

        Raises:
            StoreForeign: it has another owner.
        """
        owner, own = self.recorded(), self._folder_id()
        if own is None:
            own = str(uuid.uuid4())
            self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._home / _FOLDER_ID).write_text(f"{own}\n", encoding="ascii")
        if owner is None or (owner != own and self.is_inside):
            self._write({"store_id": str(uuid.uuid4()), "data_folder_id": own})
        self.check()

    def refusal(self) -> StoreForeign:
        """The error for a store of another data folder."""
        return StoreForeign(
            f"The vector store {self._uri} belongs to another data folder.",
            "Set vector_store.path to a place of its own. If the other data folder is gone, delete"
            " the store first.",
        )

    @property
    def _record(self) -> Path:
        return Path(self._uri) / RECORD

    def _folder_id(self) -> str | None:
        try:
            return str(uuid.UUID((self._home / _FOLDER_ID).read_text(encoding="ascii").strip()))
        except (OSError, ValueError):  # missing or damaged
            return None

    def _write(self, record: dict[str, str]) -> None:
        if "://" in self._uri:
            with contextlib.suppress(ValueError):  # another process was first: `check` reports it
                lancedb().connect(self._uri).create_table(_TABLE, data=[record], mode="create")
            return
        self._record.parent.mkdir(parents=True, exist_ok=True)
        if self._record.exists():  # damaged, or of a data folder that this one does not contain
            self._record.unlink()
        with contextlib.suppress(FileExistsError), self._record.open("x", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _read_owner(record: Path) -> str | None:
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["data_folder_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
