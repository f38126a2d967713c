"""The routes of the page. Tools are asked at `/tools/NAME`, as by everybody else.

Open to all, because it shows nothing by itself:

    GET  /, /search, /note/…, …   the one document; its scripts decide what to show
    GET  /s/HASH/…                its files
    POST /page/signin             {code} of a one-time link becomes the cookie of a session

With a session, or with the token; answers are envelopes:

    POST /page/link               a new one-time link
    POST /page/signout            ends this session
    GET  /page/start              what the frame of the page needs: vaults, health, version

and whatever READS and CHANGES list.
"""

from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from obsidian_rag.engine import Engine
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.tools import Envelope, failure, memory_list, success, sync_trash
from obsidian_rag.transports.http.activity import Activity
from obsidian_rag.transports.http.answers import Refusal, answer, status_of
from obsidian_rag.transports.http.body import BodyLimits, read_object
from obsidian_rag.transports.http.threads import ToolThreads
from obsidian_rag.transports.http.web import views
from obsidian_rag.transports.http.web.assets import ASSETS, VIEWS, Assets
from obsidian_rag.transports.http.web.map import note_map
from obsidian_rag.transports.http.web.note import (
    read_file,
    read_filters,
    read_note,
    read_relation,
)
from obsidian_rag.transports.http.web.sessions import Sessions
from obsidian_rag.transports.http.web.settings import change_settings, read_settings

Read = Callable[[Engine, Mapping[str, str]], Envelope | Response]
Change = Callable[[Engine, Mapping[str, object]], Envelope]

# GET /page/NAME?… for what is shown, POST /page/NAME {…} for what is changed.
READS: dict[str, Read] = {
    "start": views.start,
    "note": read_note,
    "file": read_file,
    "filters": read_filters,
    "relation": read_relation,
    "settings": read_settings,
    "map": note_map,
    "memory": lambda engine, _: memory_list(engine),
    "conflicts": views.conflicts,
    "trash": lambda engine, _: sync_trash(engine),
}
CHANGES: dict[str, Change] = {
    "settings": change_settings,
    "memory/forget": views.forget,
    "conflicts/resolve": views.resolve,
    "trash/restore": views.restore,
}
_SIGN_IN_LIMITS = BodyLimits(4096, 10.0)


class WebPage:
    """The page of one engine."""

    def __init__(
        self, engine: Engine, sessions: Sessions, threads: ToolThreads, activity: Activity
    ) -> None:
        self._engine = engine
        self._sign_in = SignIn(sessions)
        self._threads = threads
        self._activity = activity

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            *shell_routes(),
            *self._sign_in.routes(),
            *(Route(f"/page/{name}", self._reader(read)) for name, read in READS.items()),
            *(
                Route(f"/page/{name}", self._changer(change), methods=["POST"])
                for name, change in CHANGES.items()
            ),
        ]

    def _reader(self, read: Read) -> Callable[[Request], object]:
        async def respond(request: Request) -> Response:
            asked = dict(request.query_params)
            return await self._run(request, lambda: read(self._engine, asked))

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
            if isinstance(found, Response):
                return found
            return answer(found, status_of(found))

        with self._activity:
            return await self._threads.run(respond, request.receive)


class SignIn:
    """From a code to a session and back."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def routes(self) -> list[Route]:
        """Three of them."""
        return [
            Route("/page/signin", self._sign_in, methods=["POST"]),
            Route("/page/signout", self._sign_out, methods=["POST"]),
            Route("/page/link", self._link, methods=["POST"]),
        ]

    async def _sign_in(self, request: Request) -> Response:
        body = await read_object(request.headers, request.receive, _SIGN_IN_LIMITS)
        cookie = self._sessions.sign_in(str(body.get("code", "")))
        if cookie is None:
            raise Refusal(
                403,
                "This link was used already, or is older than two minutes.",
                "Run `obsidian-rag open` for a new one.",
            )
        return answer(success({"signed_in": True}), headers={"Set-Cookie": cookie})

    async def _sign_out(self, request: Request) -> Response:
        gone = self._sessions.sign_out(request.headers)
        return answer(success({"signed_in": False}), headers={"Set-Cookie": gone})

    async def _link(self, request: Request) -> Response:
        link = f"http://{request.headers['host']}/signin#{self._sessions.new_code()}"
        return answer(success({"url": link}))


def shell_routes() -> list[Route]:
    """The document under every address that a person may see, and its files."""
    assets = Assets()
    return [
        Route(f"/{ASSETS}/{{version}}/{{name:path}}", assets.file),
        *(Route(f"/{view}", assets.shell) for view in sorted(VIEWS)),
        Route("/note/{path:path}", assets.shell),
    ]


__all__ = ["CHANGES", "READS", "SignIn", "WebPage", "shell_routes"]
