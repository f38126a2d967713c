"""The package as it is published: ClawHub accepts it, and a copy of it works without TypeScript."""

import json
import shutil
from pathlib import Path

import pytest
from tests.openclaw.gateway import CLAWHUB, NEEDS_OPENCLAW, NODE, NPM, OPENCLAW, PLUGIN, Place

from obsidian_rag import __version__
from obsidian_rag.tools import TOOLS

pytestmark = NEEDS_OPENCLAW


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def built(place: Place) -> Path:
    """A copy of the plugin, built; the original keeps no dist/ that would go stale."""
    folder = place.root / "plugin"
    shutil.copytree(
        PLUGIN, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "__pycache__")
    )
    compiler = PLUGIN / "node_modules" / "typescript" / "bin" / "tsc"
    (folder / "node_modules").symlink_to(PLUGIN / "node_modules")
    done = place.execute([NODE / "node", compiler, "-p", "tsconfig.build.json"], cwd=folder)
    assert done.returncode == 0, done.stdout
    (folder / "node_modules").unlink()
    return folder


def test_clawhub_accepts_the_package(place: Place, built: Path) -> None:
    done = place.execute(
        [
            *(NODE / "node", CLAWHUB, "--no-input", "package", "validate", built),
            *("--openclaw", OPENCLAW.parent, "--out", place.root / "reports"),
        ]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = place.execute(
        [
            *(NODE / "node", CLAWHUB, "--no-input", "package", "publish", built),
            *("--family", "code-plugin", "--dry-run", "--json"),
            *("--source-repo", "obsidian-rag/obsidian-rag", "--source-commit", "0" * 40),
        ]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert __version__ in done.stdout


def test_a_copy_of_the_published_package_registers_the_tools(place: Place, built: Path) -> None:
    packed = place.execute(
        [
            NPM,
            "pack",
            "--ignore-scripts",
            "--json",
            "--pack-destination",
            place.root,
        ],
        cwd=built,
    )
    assert packed.returncode == 0, packed.stderr
    (made,) = json.loads(packed.stdout)
    names = {file["path"] for file in made["files"]}
    assert {"dist/index.js", "dist/tools.json", "skills/obsidian-rag/SKILL.md"} <= names
    assert not [name for name in names if name.endswith(".ts") or name.startswith("test")]
    done = place.run(
        *("plugins", "install", "--force", "--accept-capabilities"),
        f"npm-pack:{place.root / made['filename']}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = place.run("plugins", "inspect", "obsidian-rag", "--runtime", "--json")
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in TOOLS)
    assert json.loads(done.stdout)["plugin"]["version"] == __version__


def test_the_security_audit_finds_nothing_in_the_plugin(
    tmp_path_factory: pytest.TempPathFactory, built: Path
) -> None:
    place = Place(tmp_path_factory.mktemp("audit"))
    place.write_config(is_linked=False)
    # It scans what is installed here, and not what is linked.
    extensions = place.state / "extensions"
    shutil.copytree(built, extensions / "obsidian-rag")
    shutil.copytree(built, extensions / "control")
    with (extensions / "control" / "dist" / "client.js").open("a", encoding="utf-8") as source:
        source.write('import { exec } from "node:child_process";\nexec("ls");\n')
    done = place.run("security", "audit", "--deep", "--json")
    findings = json.loads(done.stdout)["findings"]
    scanned = [found for found in findings if found["checkId"].startswith("plugins.code_safety")]
    assert [(found["severity"], "control" in found["title"]) for found in scanned] == [
        ("critical", True)
    ], scanned
