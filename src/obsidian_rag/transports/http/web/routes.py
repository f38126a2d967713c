"""The routes of the page. It calls tools at `/tools/NAME`, like every client.

Open to all, because these contain no data of the user:

    GET  /, /search, /note/…, …   the one document; its scripts decide what to show
    GET  /s/HASH/…                its files
    POST /page/signin             {code} of a one-time link becomes the cookie of a session

With a session, or with the token; answers are envelopes:

    POST /page/link               a new one-time link
    POST /page/signout            ends this session
    GET  /page/start              data for the page's frame: vaults, health, version

    GET  /page/note               a note, in which the addresses of files are signed

and those in READS and CHANGES.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from obsidian_rag import __version__, config
from obsidian_rag.config import change_values, check_name, setting_choices
from obsidian_rag.engine import Engine, health_of
from obsidian_rag.errors import ConfigInvalid, IndexNotFound, InvalidArgument, ObsidianRagError
from obsidian_rag.tools import (
    Caller,
    Envelope,
    failure,
    memory_forget,
    memory_list,
    success,
    sync_conflict,
    sync_conflicts,
    sync_resolve,
    sync_restore,
    sync_trash,
)
from obsidian_rag.transports.http.messages import (
    BodyLimits,
    Refusal,
    answer,
    answer_envelope,
    read_object,
)
from obsidian_rag.transports.http.threads import Activity, ToolThreads
from obsidian_rag.transports.http.web.assets import page_routes
from obsidian_rag.transports.http.web.note import (
    read_file,
    read_filters,
    read_note,
    read_relation,
)
from obsidian_rag.transports.http.web.sessions import CALLER, Sessions


def note_map(engine: Engine, asked: Mapping[str, str], _: Caller) -> Response:
    """All notes, or with `note` the neighbourhood of that note of a `vault`.

    Raises:
        IndexNotFound: nothing is indexed yet.
        NotFound: there is no such note.
    """
    vault_map = engine.live.vault_map
    if vault_map is None:
        raise IndexNotFound("There is no map here.", "Start the daemon: `obsidian-rag serve`.")
    note = asked.get("note")
    if note:
        drawn = vault_map.around(engine.vaults.one(asked.get("vault")).link_id, note)
    else:
        drawn = vault_map.drawn()
    return Response(drawn.encoded(), media_type="application/octet-stream")


def start(engine: Engine, _: Mapping[str, str], __: Caller) -> Envelope:
    """The vaults, and the engine's health."""
    health = health_of(engine)
    vaults = [
        {
            "id": vault.link_id,
            "name": vault.name,
            "path": str(vault.root),
            "is_primary": vault.is_primary,
            "mode": str(vault.mode),
        }
        for vault in engine.vaults
    ]
    shown = {"state": health.state, "error": health.error.body if health.error else None}
    return success({"version": __version__, "vaults": vaults, "health": shown})


def forget(engine: Engine, asked: Mapping[str, object]) -> Envelope:
    """Remove a fact.

    Raises:
        NotFound: there is no fact with this key.
    """
    return memory_forget(engine, _text(asked, "key"))


def conflicts(engine: Engine, asked: Mapping[str, str], _: Caller) -> Envelope:
    """The unresolved conflicts or, with `path`, both sides of one.

    Raises:
        ObsidianRagError: LiveSync is not set up, or its database cannot be reached.
    """
    path = asked.get("path")
    return sync_conflict(engine, path) if path else sync_conflicts(engine)


def resolve(engine: Engine, asked: Mapping[str, object]) -> Envelope:
    """Resolve a conflict.

    Raises:
        ObsidianRagError: as for `conflicts`.
    """
    text = asked.get("text")
    merged = text if isinstance(text, str) else None
    return sync_resolve(engine, _text(asked, "path"), _text(asked, "keep"), merged)


def restore(engine: Engine, asked: Mapping[str, object]) -> Envelope:
    """Restore a file from the trash.

    Raises:
        NotFound: it is no longer in the trash.
    """
    number = asked.get("id")
    if not isinstance(number, int):
        raise InvalidArgument("'id' is missing.", "Send the number of a file in the trash.")
    return sync_restore(engine, number)


def _text(asked: Mapping[str, object], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"'{name}' is missing.", "Send it as text.")
    return value


# Set elsewhere on the page, or not meant for people.
_NOT_HERE = {"version", "vector_store.type"}


def read_settings(engine: Engine, _: Mapping[str, str], __: Caller) -> Envelope:
    """Every setting with its value, default and help, in the order of the file."""
    sections: dict[str, dict[str, Any]] = {}
    fields = config.Settings.model_fields
    for name, info in config.setting_fields():
        if name in _NOT_HERE:
            continue
        section = name.rpartition(".")[0]
        if section not in sections:
            kind = fields[section].annotation if section else None
            help_text = (kind.__doc__ or "") if kind else ""
            sections[section] = {"name": section or "vault", "help": help_text, "settings": []}
        sections[section]["settings"].append(_setting(engine, name, info.description or ""))
    file = str(engine.config.file)
    return success({"sections": list(sections.values()), "file": file})


def change_settings(engine: Engine, asked: Mapping[str, object]) -> Envelope:
    """Validate changes together, list their consequences, and save them if requested.

    Raises:
        InvalidArgument: there is no such setting, it cannot be changed here, or a value does not
            fit; nothing is changed.
    """
    changes = asked.get("changes")
    if not isinstance(changes, Mapping):
        raise InvalidArgument("'changes' must be an object.", "Send {name: value}.")
    after = _apply_changes(engine.config, changes)
    changed = [name for name in changes if after.value(name) != engine.config.value(name)]
    notes = list(_consequences(engine, after, changed))
    if asked.get("save") is True:
        engine.settings_file.change(changes)
        engine.follow_settings()
    return success({"changed": changed, "notes": notes, "saved": asked.get("save") is True})


def _apply_changes(now: config.Config, changes: Mapping[str, object]) -> config.Config:
    tree = config.read_file(now.file)
    try:
        for name in changes:
            _check_changeable(name)
        change_values(tree, changes)
        return now.renewed(tree)
    except ConfigInvalid as error:
        raise InvalidArgument(error.message, error.suggestion) from error


def _check_changeable(name: str) -> None:
    check_name(name)
    if name in _NOT_HERE or _is_secret(name):
        raise InvalidArgument(f"'{name}' is not changed here.", "Use `obsidian-rag config set`.")


def _consequences(engine: Engine, after: config.Config, changed: list[str]) -> Iterator[str]:
    """What the user should know before saving."""
    if reindex := [name for name in changed if name in config.NEEDS_REINDEX]:
        yield (
            f"{', '.join(reindex)}: the index was built with the old value and must be rebuilt"
            " (Health, Rebuild). Until then, search uses words only."
        )
    if restart := [name for name in changed if name in config.NEEDS_RESTART]:
        yield f"{', '.join(restart)}: take effect after the daemon restarts."
    if hidden := [name for name in changed if name in engine.config.overrides]:
        yield f"{', '.join(hidden)}: the environment of the daemon overrides the file."
    if "vault_path" in changed and after.has_vault:
        roots = ", ".join(str(root) for root in after.vault_roots)
        yield f"vault_path: the index will be made of {roots}."


def _setting(engine: Engine, name: str, help_text: str) -> dict[str, Any]:
    value, default = engine.config.value(name), _default(name)
    needs = "reindex" if name in config.NEEDS_REINDEX else None
    return {
        "name": name,
        "help": help_text,
        "value": None if _is_secret(name) else value,
        "default": default,
        "choices": [word for word in setting_choices(name) if word not in ("true", "false")],
        "kind": "secret" if _is_secret(name) else _kind(name),
        "needs": "restart" if name in config.NEEDS_RESTART else needs,
        "is_overridden": name in engine.config.overrides,
    }


def _kind(name: str) -> str:
    annotation = str(dict(config.setting_fields())[name].annotation)
    if "bool" in annotation:
        return "flag"
    if "tuple" in annotation and "dict" not in annotation:
        return "list"
    if "dict" in annotation:
        return "json"
    return "number" if "int" in annotation or "float" in annotation else "text"


def _default(name: str) -> Any:
    found: Any = config.Settings().model_dump(mode="json")
    for part in name.split("."):
        found = found[part]
    return found


def _is_secret(name: str) -> bool:
    return SecretStr.__name__ in str(dict(config.setting_fields())[name].annotation)


Read = Callable[[Engine, Mapping[str, str], Caller], Envelope | Response]
Change = Callable[[Engine, Mapping[str, object]], Envelope]

# GET /page/NAME?… reads, POST /page/NAME {…} changes.
READS: dict[str, Read] = {
    "start": start,
    "file": read_file,
    "filters": read_filters,
    "relation": read_relation,
    "settings": read_settings,
    "map": note_map,
    "memory": lambda engine, _, caller: memory_list(engine, caller),
    "conflicts": conflicts,
    "trash": lambda engine, _, __: sync_trash(engine),
}
CHANGES: dict[str, Change] = {
    "settings": change_settings,
    "memory/forget": forget,
    "conflicts/resolve": resolve,
    "trash/restore": restore,
}
_SIGN_IN_LIMITS = BodyLimits(4096, 10.0)


class WebPage:
    """The page's routes for one engine."""

    def __init__(
        self, engine: Engine, sessions: Sessions, threads: ToolThreads, activity: Activity
    ) -> None:
        self._engine = engine
        self._sign_in = SignIn(sessions)
        self._sign = sessions.sign
        self._threads = threads
        self._activity = activity

    def routes(self) -> list[BaseRoute]:
        """The routes for the page, its data and its changes."""
        return [
            *page_routes(),
            *self._sign_in.routes(),
            *(Route(f"/page/{name}", self._reader(read)) for name, read in READS.items()),
            Route("/page/note", self._reader(partial(read_note, sign=self._sign))),
            *(
                Route(f"/page/{name}", self._changer(change), methods=["POST"])
                for name, change in CHANGES.items()
            ),
        ]

    def _reader(self, read: Read) -> Callable[[Request], object]:
        async def respond(request: Request) -> Response:
            asked = dict(request.query_params)
            caller = request.scope[CALLER]
            return await self._run(request, lambda: read(self._engine, asked, caller))

        return respond

    def _changer(self, change: Change) -> Callable[[Request], object]:
        async def respond(request: Request) -> Response:
            limits = BodyLimits.of(self._engine.config.settings.server)
            asked = await read_object(request.headers, request.receive, limits)
            return await self._run(request, lambda: change(self._engine, asked))

        return respond

    async def _run(self, request: Request, work: Callable[[], Envelope | Response]) -> Response:
        def respond() -> Response:
            try:
                with self._engine.one_set_of_settings():
                    found = work()
            except ObsidianRagError as error:
                found = failure(error)
            return found if isinstance(found, Response) else answer_envelope(found)

        with self._activity:
            return await self._threads.run(respond, request.receive)


class SignIn:
    """The routes to sign in and out."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def routes(self) -> list[Route]:
        """The three routes."""
        return [
            Route("/page/signin", self._sign_in, methods=["POST"]),
            Route("/page/signout", self._sign_out, methods=["POST"]),
            Route("/page/link", self._link, methods=["POST"]),
        ]

    async def _sign_in(self, request: Request) -> Response:
        body = await read_object(request.headers, request.receive, _SIGN_IN_LIMITS)
        session = self._sessions.sign_in(str(body.get("code", "")))
        if session is None:
            raise Refusal(
                403,
                "This link was used already, or is older than two minutes.",
                "Run `obsidian-rag open` for a new one.",
            )
        cookie, proof = session
        data = {"signed_in": True, "proof": proof}
        return answer(success(data), headers={"Set-Cookie": cookie})

    async def _sign_out(self, request: Request) -> Response:
        gone = self._sessions.sign_out(request.headers)
        return answer(success({"signed_in": False}), headers={"Set-Cookie": gone})

    async def _link(self, request: Request) -> Response:
        link = f"http://{request.headers['host']}/signin#{self._sessions.new_code()}"
        return answer(success({"url": link}))
