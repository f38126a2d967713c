"""List the licence of every package we ship with; exit 1 when one is unknown or not accepted.

`make check` runs it. It reads what the packages of requirements/app.lock say of themselves, so a
package of another system or Python has its row in `_ELSEWHERE`.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements" / "app.lock"
_PINNED = re.compile(r"^([\w.-]+)==(\S+)( ;)?", re.MULTILINE)
# What MIT software may be combined with. The MPL's conditions end at the files of its own package.
_ACCEPTED = {
    "0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0",
    "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
# Spellings of older metadata.
_SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT, BSD": "MIT AND BSD",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Packages that are installed on other systems or Pythons only; looked up by hand.
_ELSEWHERE = {
    "backports-tarfile": "MIT",
    "colorama": "BSD",
    "flatbuffers": "Apache-2.0",
    "hf-xet": "Apache-2.0",
    "httpx2-jsfetch": "BSD-3-Clause",
    "importlib-metadata": "Apache-2.0",
    "jeepney": "MIT",
    "lazy-importer": "Apache-2.0",
    "onnxruntime": "MIT",
    "overrides": "Apache-2.0",
    "protobuf": "BSD-3-Clause",
    "pywin32": "PSF-2.0",
    "pywin32-ctypes": "BSD-3-Clause",
    "secretstorage": "BSD-3-Clause",
    "zipp": "MIT",
}


def licences() -> dict[str, str]:
    """The licence of every locked package, empty where it names none."""
    return {name: licence(name) for name, _, _ in _PINNED.findall(LOCK.read_text("utf-8"))}


def licence(package: str) -> str:
    """What an installed package says of itself, in the words of SPDX where we know them."""
    try:
        told = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return _ELSEWHERE.get(package, "")
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in told.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    # Some write the whole text of their licence; its title comes first.
    first = (told.get("License") or "").partition("\n")[0].strip()
    text = told.get("License-Expression") or first or " AND ".join(classifiers)
    return _SPELLINGS.get(text, text)


def is_accepted(text: str) -> bool:
    """Whether one of its alternatives asks for nothing but what we accept."""
    return any(
        all(part.strip("() ") in _ACCEPTED for part in choice.split(" AND "))
        for choice in text.split(" OR ")
    )


def main() -> int:
    """Print the list; returns the exit code."""
    found = licences()
    if "--list" in sys.argv:
        sys.stdout.writelines(f"{name}: {text}\n" for name, text in found.items())
    refused = {name: text for name, text in found.items() if not is_accepted(text)}
    for name, text in refused.items():
        sys.stderr.write(f"{name}: the licence {text or '(none named)'} is not accepted\n")
    sys.stdout.write(f"{len(found)} packages, {len(refused)} with a licence we do not accept\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
