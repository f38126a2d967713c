"""When the door was last used."""

import time


class Activity:
    """When the door was last used; listening to events and asking for health do not count."""

    def __init__(self) -> None:
        self._under_way = 0
        self._at = time.monotonic()

    def __enter__(self) -> None:
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        self.note_use()

    def note_use(self) -> None:
        """Count as used now."""
        self._at = time.monotonic()

    @property
    def idle_s(self) -> float:
        """How long nobody has used it."""
        return 0 if self._under_way else time.monotonic() - self._at
