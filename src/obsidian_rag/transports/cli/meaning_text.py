"""How far the meaning vectors are, in words."""

from typing import Any

_MINUTE_S = 60
_HOUR_S = 3600


def meaning_text(meaning: Any) -> str:
    """One line about what the status says of meaning vectors."""
    share = f"{meaning['done']:,} of {meaning['total']:,}"
    if meaning["trouble"]:
        return f"meaning vectors stop at {share}: {meaning['trouble']}"
    if meaning["is_paused"] and meaning["done"] < meaning["total"]:
        return f"meaning vectors: {share} (paused)"
    left = meaning["seconds_left"]
    return f"meaning vectors: {share}" + (f" ({about_duration(left)} left)" if left else "")


def about_duration(seconds: float) -> str:
    """Roughly how long."""
    if seconds < _MINUTE_S:
        return f"about {max(1, round(seconds))} s"
    if seconds < 2 * _HOUR_S:
        return f"about {round(seconds / _MINUTE_S)} min"
    return f"about {round(seconds / _HOUR_S)} h"
