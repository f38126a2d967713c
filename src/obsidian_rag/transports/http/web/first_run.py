"""The door for the first run: without an engine, until a vault is chosen.

GET  /page/start                  no vaults yet
GET  /page/welcome                the vaults in Obsidian's list
POST /page/welcome {path, replace}    choose a folder; then the daemon starts
"""

from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from obsidian_rag import __version__, config
from obsidian_rag.config import existing_folder
from obsidian_rag.engine import Bus, accept_replacement, offered_vaults, replaced_vault
from obsidian_rag.errors import ConfigInvalid, InvalidArgument, ObsidianRagError
from obsidian_rag.tools import Envelope, failure, success
from obsidian_rag.transports.http.app import GuardedDoor
from obsidian_rag.transports.http.messages import BodyLimits, answer, answer_envelope, read_object
from obsidian_rag.transports.http.web.assets import page_routes
from obsidian_rag.transports.http.web.routes import SignIn

_LIMITS = BodyLimits(16 * 1024, 10.0)
_NO_VAULT = "Choose one on the page (`obsidian-rag open`), or run `obsidian-rag init --vault …`."


class FirstRunDoor(GuardedDoor):
    """An ASGI application with the page, sign-in, and the choice of a vault."""

    def __init__(
        self,
        settings: config.Config,
        port: int,
        token: str,
        on_shutdown: Callable[[], None],
        on_chosen: Callable[[], None],
    ) -> None:
        super().__init__(settings, Bus(), port, token, on_shutdown)
        self._config = settings
        self._on_chosen = on_chosen
        routes = [
            *page_routes(),
            *SignIn(self.sessions).routes(),
            Route("/page/start", self._start),
            Route("/page/welcome", self._offer),
            Route("/page/welcome", self._choose, methods=["POST"]),
            Route("/tools/{name}", self._refuse, methods=["POST"]),
            Route("/events", self.streams),
            Route("/healthz", self._health),
        ]
        self.serve(routes)

    async def _start(self, _: Request) -> Response:
        error = _no_vault().body
        health = {"state": "unavailable", "error": error}
        return answer(success({"version": __version__, "vaults": [], "health": health}))

    async def _offer(self, _: Request) -> Response:
        offered = [{"path": str(root), "name": root.name} for root in offered_vaults()]
        return answer(success({"vaults": offered}))

    async def _choose(self, request: Request) -> Response:
        asked = await read_object(request.headers, request.receive, _LIMITS)
        choose = partial(self._save_vault, str(asked.get("path", "")), asked.get("replace") is True)
        envelope = await self.threads.run(choose, request.receive)
        if envelope["data"] is not None:
            self._on_chosen()
        return answer_envelope(envelope)

    def _save_vault(self, path: str, may_replace: bool) -> Envelope:
        try:
            return success({"vault_path": choose_vault(self._config, path, may_replace)})
        except ObsidianRagError as error:
            return failure(error)

    async def _refuse(self, _: Request) -> Response:
        return answer_envelope(failure(_no_vault()))

    async def _health(self, _: Request) -> Response:
        return answer({"status": "unavailable", "version": __version__})


def choose_vault(settings: config.Config, path: str, may_replace: bool) -> str:
    """Set the vault in the config file; other settings are kept.

    Raises:
        NotFound: there is no such folder.
        InvalidArgument: the index of another vault would be replaced.
        ConfigInvalid: the data folder is inside it.
    """
    if not path.strip():
        raise InvalidArgument("No folder was named.", "Type the path of your vault.")
    root = existing_folder(path.strip())
    tree = config.read_file(settings.file)
    tree.setdefault("version", config.CONFIG_VERSION)
    tree["vault_path"] = str(root)
    chosen = config.Config(settings.home, settings.file, config.validate(tree, settings.file))
    other = replaced_vault(chosen)
    if other is not None and not may_replace:
        raise InvalidArgument(
            f"The index holds {other.notes:,} notes of another vault, {other.path}.",
            "Choose again to replace it.",
        )
    accept_replacement(chosen, is_accepted=other is not None)
    config.save(tree, settings.file)
    return str(root)


def _no_vault() -> ConfigInvalid:
    return ConfigInvalid("No vault is configured.", _NO_VAULT)
