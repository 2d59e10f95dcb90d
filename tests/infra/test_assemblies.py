"""An assembly of the cache is what `cdk synth` writes, and its inputs are all that its synthesis reads."""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from asya_infra.assemblies import PRODUCT_SOURCES, Synthesis
from asya_infra.limits.gate import check_mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.product.app import cdk_tool, node_path
from asya_infra.product.places import BUILD, FILES
from asya_infra.synthesis import add_mesh
from tests.infra.conftest import FLAGS
from tests.paths import PROJECT

LIGHT = Path(__file__).parent / "mesh" / "light.yaml"
_MACHINE = ("/proc/", "/dev/", "/sys/", "/etc/", "/tmp/", "/var/")
"""Settings of the system: uv's own are inputs of packages (`requirements`)."""


@pytest.mark.slow
def test_the_templates_are_those_of_the_command_of_the_cdk(tmp_path: Path, no_aws_environment: None) -> None:
    made = Synthesis(load_mesh(LIGHT)).run()
    command = [str(cdk_tool()), "synth", "--quiet", "--no-notices", "-c", f"mesh={LIGHT}", "--output", str(tmp_path)]
    command += ["--app", f"exec {sys.executable} {FILES / 'app.py'}"]
    subprocess.run(command, check=True, cwd=FILES, env={**os.environ, "PATH": node_path()}, capture_output=True)
    names = sorted(path.name for path in tmp_path.glob("*.template.json"))
    assert names
    assert filecmp.cmpfiles(made.folder, tmp_path, names, shallow=False) == (names, [], [])
    # The limit gate measures functions by it.
    assert "aws:asset:path" in "".join((made.folder / name).read_text() for name in names)
    assets = sorted(path.name for path in tmp_path.glob("asset.*"))
    assert assets == sorted(path.name for path in made.folder.glob("asset.*"))


_OPENED: set[str] | None = None
"""The files that were opened; None while nobody looks."""


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """Note an opened file. `shutil.rmtree` names what it removes relative to an open folder, which the event does not have."""
    if event != "open" or _OPENED is None or not isinstance(arguments[0], str):
        return
    if os.path.isabs(arguments[0]) or os.path.exists(arguments[0]):
        _OPENED.add(os.path.realpath(arguments[0]))


def test_what_synthesis_reads_is_an_input(tmp_path: Path, no_aws_environment: None) -> None:
    """No hook can be removed, so it notes nothing later."""
    global _OPENED  # noqa: PLW0603
    mesh = load_mesh(PROJECT / "mesh.yaml")
    sys.addaudithook(_note)
    _OPENED = set()
    app = App(outdir=str(tmp_path), context={**FLAGS, "mesh": str(mesh.path)})
    check_mesh(add_mesh(app, PROJECT), Path(app.synth().directory))
    opened, _OPENED = _OPENED, None
    known = [part for part in (*PRODUCT_SOURCES, mesh.path, mesh.code_folder, mesh.jobs_folder) if part.exists()]
    ours = [
        *map(os.path.realpath, (BUILD, tmp_path, sys.prefix, sys.base_prefix))
    ]  # what inputs were built into; packages
    unknown = {
        file
        for file in opened
        if not file.startswith((*(f"{folder}/" for folder in ours), *_MACHINE))
        and not any(Path(file).is_relative_to(os.path.realpath(part)) for part in known)
    }
    settings = {
        str(FILES / name) for name in ("pyproject.toml", "uv.toml")
    }  # their tables for uv are inputs of packages
    assert unknown - settings == set()
    assert len(opened) > 20
