"""The worker process as the jobs see it: a child that is told the settings of now."""

from obsidian_rag.config import Config
from obsidian_rag.process import ChildProcess

_PROGRAM = "from obsidian_rag.engine.worker import serve; serve()"


class WorkerLink(ChildProcess):
    """Starts the worker, speaks with it and ends it; what it tells of meaning vectors is news."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            _PROGRAM,
            lambda: self.config.logs / "worker.log",
            lambda message: message.get("type") == "meaning",
        )
        self.config = config
        self._sent: Config | None = None

    @property
    def is_configured(self) -> bool:
        """Whether the worker has the settings of now."""
        return self.config is self._sent

    def greet(self) -> None:
        """A new worker has no settings yet."""
        self._sent = None
        self.configure()

    def configure(self) -> None:
        """Tell the worker the settings of now, unless it has them; not while it runs.

        Raises:
            ChildGone: nobody is there to hear it.
        """
        config = self.config
        if config is not self._sent:
            told = {"home": str(config.home), "file": str(config.file)}
            settings = config.settings.model_dump(mode="json", by_alias=True)
            self.send({"type": "configure", **told, "settings": settings})
            self._sent = config
