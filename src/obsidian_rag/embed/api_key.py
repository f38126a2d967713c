"""The key that a provider wants, by the name of the environment variable that holds it.

Threat: a key ends up in a log, a message or a file. So it is read when a request is made, goes
into one header, and is kept nowhere.
"""

import os
from dataclasses import dataclass

from obsidian_rag.errors import ProviderFailed


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Where a key is, and the header that takes it."""

    variable: str
    header: str
    before: str = ""

    def headers(self) -> dict[str, str]:
        """The header with the key.

        Raises:
            ProviderFailed: the variable is not set, or holds what cannot be a key.
        """
        key = os.environ.get(self.variable, "").strip()
        if not key:
            raise ProviderFailed(
                f"The environment variable {self.variable} is not set; it must hold the key.",
                f"Set {self.variable} where obsidian-rag runs, then start its daemon anew.",
            )
        if not key.isascii() or not key.isprintable():
            raise ProviderFailed(
                f"The environment variable {self.variable} does not hold a key.",
                f"Set {self.variable} to the key alone.",
            )
        return {self.header: self.before + key}
