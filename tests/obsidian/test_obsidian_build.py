"""What `make plugin-obsidian` leaves: a folder for the vault, and a repository of its own."""

import json
import shutil
import subprocess

from tests.obsidian.harness import NEEDS_BROWSER, PLUGIN

pytestmark = NEEDS_BROWSER
MOST_BYTES = 100_000


def test_the_folder_can_be_copied_and_the_repository_builds_the_same() -> None:
    npm = shutil.which("npm") or "npm"
    for script in ("build", "tree"):
        subprocess.run([npm, "run", "--silent", script], cwd=PLUGIN, check=True)
    folder, repository = PLUGIN / "dist" / "rag-companion", PLUGIN / "dist" / "repository"
    assert {file.name for file in folder.iterdir()} == {"main.js", "manifest.json", "styles.css"}
    main = (folder / "main.js").read_text()
    assert len(main) < MOST_BYTES
    assert "sourceMappingURL" not in main
    root = {file.name for file in repository.iterdir()}
    assert {"manifest.json", "versions.json", "README.md", "LICENSE", "package-lock.json"} <= root
    assert not root & {"main.js", "node_modules", "dist"}
    assert json.loads((repository / "manifest.json").read_text())["id"] == folder.name
