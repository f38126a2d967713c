"""Every expected failure, in one tree with stable codes.

    ObsidianRagError
    ├── InvalidArgument       INVALID_ARGUMENT     the caller asked for something impossible
    ├── NotFound              NOT_FOUND            a named note, link or job does not exist
    ├── ConfigInvalid         CONFIG_INVALID       the settings cannot be used
    ├── SecurityViolation     SECURITY_VIOLATION   a path or a connection leaves its boundary
    ├── SensitiveFiltered     SENSITIVE_FILTERED   private text was withheld
    ├── IndexNotFound         INDEX_NOT_FOUND      nothing has been indexed yet
    ├── IndexCorrupted        INDEX_CORRUPTED      the index cannot be read
    ├── StoreForeign          STORE_FOREIGN        the vector store belongs to another data folder
    ├── IndexStale            INDEX_STALE          the vault has changed since it was indexed
    ├── IndexIncomplete       INDEX_INCOMPLETE     not every note of the vault is searchable
    ├── VaultAway             VAULT_AWAY           the vault, or too much of it, is missing
    ├── IndexerFailed         INDEXER_FAILED       an index run ended before its work was done
    ├── OllamaUnreachable     OLLAMA_UNREACHABLE   the Ollama server does not answer
    ├── ProviderFailed        PROVIDER_FAILED      an embedding provider answered with an error
    ├── EmbeddingMismatch     EMBEDDING_MISMATCH   the index was made by another embedder
    ├── Busy                  BUSY                 another process is writing
    ├── ReadOnly              READ_ONLY            the target may not be changed
    ├── NoteChanged           NOTE_CHANGED         a note is no longer what the edit was based on
    ├── LivesyncUnreachable   LIVESYNC_UNREACHABLE  the CouchDB server does not answer
    ├── LivesyncRefused       LIVESYNC_REFUSED      the server rejects the sign-in or the request
    ├── LivesyncLocked        LIVESYNC_LOCKED       the database is locked for this device
    ├── LivesyncIncompatible  LIVESYNC_INCOMPATIBLE the database has another version or format
    ├── LivesyncPassphrase    LIVESYNC_PASSPHRASE   the passphrase is wrong for the database
    ├── LivesyncBrake         LIVESYNC_BRAKE        so many files are gone that we stopped to ask
    ├── LivesyncUnreadable    LIVESYNC_UNREADABLE   a document cannot be read or must not be applied
    ├── LivesyncTooLarge      LIVESYNC_TOO_LARGE    the server refuses a file as too large
    └── LivesyncConflict      LIVESYNC_CONFLICT     a note was changed in two places

The class holds what never varies (code, exit code, HTTP status) and the health that goes with it;
the instance holds one sentence and the user's next step. For a failure of the call alone
(`is_about_call`), `dispatch` sets `status` to the engine's own health.
"""

import errno
from typing import ClassVar, Literal, TypedDict, get_args

# From good to bad.
Status = Literal["healthy", "degraded", "unavailable"]


class ErrorBody(TypedDict):
    """A failure as the caller sees it, whatever the transport."""

    code: str
    message: str
    recoverable: bool
    suggestion: str


class ObsidianRagError(Exception):
    """An expected failure: a code for programs, a sentence and a next step for people."""

    code: ClassVar[str] = "INDEXER_FAILED"
    status: Status = "unavailable"
    is_about_call: bool = False
    recoverable: ClassVar[bool] = True
    exit_code: ClassVar[int] = 2
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion

    @property
    def body(self) -> ErrorBody:
        """The failure as plain data; `error_from` turns it back into an exception."""
        return ErrorBody(
            code=self.code,
            message=self.message,
            recoverable=self.recoverable,
            suggestion=self.suggestion,
        )


class InvalidArgument(ObsidianRagError):
    """The caller asked for something impossible."""

    code = "INVALID_ARGUMENT"
    is_about_call = True
    http_status = 400


class NotFound(ObsidianRagError):
    """A named note, link or job does not exist."""

    code = "NOT_FOUND"
    is_about_call = True
    http_status = 404


class ConfigInvalid(ObsidianRagError):
    """The settings cannot be used as they are."""

    code = "CONFIG_INVALID"


class SecurityViolation(ObsidianRagError):
    """A path or a connection would leave its boundary."""

    code = "SECURITY_VIOLATION"
    is_about_call = True
    recoverable = False
    http_status = 403

    def __init__(self, message: str, suggestion: str = "", *, is_about_call: bool = True) -> None:
        super().__init__(message, suggestion)
        # Settings or a data folder that break the boundary fail every call.
        self.is_about_call = is_about_call


class SensitiveFiltered(ObsidianRagError):
    """Private text was withheld until the user confirms."""

    code = "SENSITIVE_FILTERED"
    status = "degraded"
    http_status = 403


class IndexNotFound(ObsidianRagError):
    """Nothing has been indexed yet."""

    code = "INDEX_NOT_FOUND"
    http_status = 503


class IndexCorrupted(ObsidianRagError):
    """The index cannot be read."""

    code = "INDEX_CORRUPTED"
    http_status = 503


class StoreForeign(ObsidianRagError):
    """The vector store belongs to another data folder."""

    code = "STORE_FOREIGN"
    http_status = 409


class IndexStale(ObsidianRagError):
    """The vault has changed since it was indexed."""

    code = "INDEX_STALE"
    status = "degraded"


class IndexIncomplete(ObsidianRagError):
    """Not every note of the vault is searchable."""

    code = "INDEX_INCOMPLETE"
    status = "degraded"
    http_status = 503


class VaultAway(ObsidianRagError):
    """The vault, or too much of it, is missing."""

    code = "VAULT_AWAY"
    status = "degraded"
    http_status = 503


class IndexerFailed(ObsidianRagError):
    """An index run ended before its work was done."""

    code = "INDEXER_FAILED"


class OllamaUnreachable(ObsidianRagError):
    """The Ollama server does not answer."""

    code = "OLLAMA_UNREACHABLE"
    status = "degraded"
    http_status = 503


class ProviderFailed(ObsidianRagError):
    """An embedding provider answered with an error."""

    code = "PROVIDER_FAILED"
    status = "degraded"
    http_status = 502


class EmbeddingMismatch(ObsidianRagError):
    """The index was made by another embedder."""

    code = "EMBEDDING_MISMATCH"
    status = "degraded"
    http_status = 409


class Busy(ObsidianRagError):
    """Another process is writing the index."""

    code = "BUSY"
    is_about_call = True
    http_status = 409


class ReadOnly(ObsidianRagError):
    """The target may not be changed."""

    code = "READ_ONLY"
    is_about_call = True
    recoverable = False
    http_status = 403


class NoteChanged(ObsidianRagError):
    """A note is no longer what the edit was based on."""

    code = "NOTE_CHANGED"
    is_about_call = True
    http_status = 409


class LivesyncUnreachable(ObsidianRagError):
    """The CouchDB server does not answer."""

    code = "LIVESYNC_UNREACHABLE"
    status = "degraded"
    http_status = 503


class LivesyncRefused(ObsidianRagError):
    """The server rejects the sign-in or the request."""

    code = "LIVESYNC_REFUSED"
    status = "degraded"
    http_status = 502


class LivesyncLocked(ObsidianRagError):
    """The database is locked for this device, as after a rebuild."""

    code = "LIVESYNC_LOCKED"
    status = "degraded"
    http_status = 409


class LivesyncIncompatible(ObsidianRagError):
    """The database has another version or format than ours."""

    code = "LIVESYNC_INCOMPATIBLE"
    status = "degraded"
    http_status = 409


class LivesyncPassphrase(ObsidianRagError):
    """The passphrase is wrong for the database."""

    code = "LIVESYNC_PASSPHRASE"
    status = "degraded"
    http_status = 409


class LivesyncBrake(ObsidianRagError):
    """So many files are gone that we stopped to ask."""

    code = "LIVESYNC_BRAKE"
    status = "degraded"
    http_status = 409


class LivesyncUnreadable(ObsidianRagError):
    """A document of the database cannot be read or must not be applied."""

    code = "LIVESYNC_UNREADABLE"
    status = "degraded"
    http_status = 409


class LivesyncTooLarge(ObsidianRagError):
    """The server refuses a part of a file as too large (HTTP 413)."""

    code = "LIVESYNC_TOO_LARGE"
    status = "degraded"
    http_status = 409


class LivesyncConflict(ObsidianRagError):
    """A note was changed in two places and waits for the user."""

    code = "LIVESYNC_CONFLICT"
    status = "degraded"
    http_status = 409


def error_kinds() -> dict[str, type[ObsidianRagError]]:
    """The class of each code, without subclasses that share the code of their parent."""
    kinds = list(ObsidianRagError.__subclasses__())
    for kind in kinds:  # the loop extends the list
        kinds += kind.__subclasses__()
    return {kind.code: kind for kind in kinds if "code" in vars(kind)}


def error_from(code: str, message: str, suggestion: str = "") -> ObsidianRagError:
    """Rebuild a failure that another process reported; an unknown code is an IndexerFailed."""
    return error_kinds().get(code, IndexerFailed)(message, suggestion)


def unexpected(error: Exception, suggestion: str = "") -> IndexerFailed:
    """Wrap an unexpected exception, naming only its type: its text may quote a note."""
    return IndexerFailed(f"Something unexpected went wrong ({type(error).__name__}).", suggestion)


def is_disk_full(error: OSError) -> bool:
    """Whether the disk, or the user's quota on it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_denied(error: OSError) -> bool:
    """Whether permissions or a read-only disk are the cause."""
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def disk_fault(
    error: OSError, what: str, then: str = "run the command again", verb: str = "written"
) -> ObsidianRagError:
    """The error for a file or folder, `what`, that the system could not write.

    `then` is the next step, once there is space or permission; `verb` is what was tried.
    """
    begin = what[:1].upper() + what[1:]
    if is_disk_full(error):
        return IndexerFailed(
            f"The disk is full; {what} could not be {verb}.", f"Free some disk space, then {then}."
        )
    if is_denied(error):
        return ReadOnly(
            f"{begin} may not be {verb} ({error.strerror}).",
            f"Change its permissions, then {then}.",
        )
    return IndexerFailed(
        f"{begin} could not be {verb} ({error.strerror}).", f"Check the disk, then {then}."
    )


def worse(one: Status, other: Status) -> Status:
    """The worse of two states of health."""
    return max(one, other, key=get_args(Status).index)
