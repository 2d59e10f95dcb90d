"""Starts a mesh of `asya dev`, and ends it with all its processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya_local.cleanup import clean_up
from asya_local.dev.emulator import start_emulator
from asya_local.errors import LocalCloudError
from asya_local.processes import signals_ignored
from asya_local.servers import running_servers
from asya_local.state_folder import StateFolder
from asya_local.tools import find_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from asya_local.dev.running_mesh import RunningMesh
    from asya_local.steps import Steps


@dataclass(frozen=True)
class DevOptions:
    """What to run, and where.

    Attributes:
        mesh: The mesh file.
        state: The state folder.
        stage: The stage of the mesh file.
        secrets: The file with the values of secrets; None for `secrets.env` in the state folder.
    """

    mesh: Path
    state: Path
    stage: str = ""
    secrets: Path | None = None


@contextmanager
def running(options: DevOptions, tell: Callable[[str, str], None], steps: Steps) -> Iterator[RunningMesh]:
    """Start a mesh; it ends with the block.

    Args:
        options: What to run, and where.
        tell: Takes the level and the text of what the author should know.
        steps: Measures the steps of the start.

    Raises:
        LocalCloudError: The mesh file has problems, a tool is missing, a process does not start, or a local cloud runs.
        PackagesError: A required package cannot be installed.
    """
    if not options.mesh.exists():  # before a folder is made
        from asya_local.sources import load as load_mesh

        load_mesh(options.mesh, options.stage)
    folder = StateFolder.at(options.state)
    with folder.locked():
        if running_servers(folder) is not None and not folder.dev.exists():
            raise LocalCloudError(
                f"A local cloud runs in {folder.root}. Run `asya local down --state {options.state}` first, or use another --state."
            )
        started: list[RunningMesh] = []
        try:
            clean_up(folder)
            folder.create()
            folder.rotate_logs()
            folder.dev.touch()
            yield _start(options, folder, tell, steps, started)
        finally:
            with signals_ignored():
                for each in started:
                    each.close()
                clean_up(folder)


def _start(
    options: DevOptions, folder: StateFolder, tell: Callable[[str, str], None], steps: Steps, started: list[RunningMesh]
) -> RunningMesh:
    """Start the emulator, and meanwhile import what the mesh needs, which takes as long.

    Args:
        started: Gets the mesh as soon as it has something to close.
    """
    with steps.step("emulator"), ThreadPoolExecutor(1) as executor:
        starting = executor.submit(start_emulator, folder, find_tools(spark=False, cdk=False))
        from asya_local.dev.running_mesh import RunningMesh
        from asya_local.sources import load

        loaded = load(options.mesh, options.stage)
        emulator = starting.result()
    emulator.use()
    with steps.step("mesh"):
        running_mesh = RunningMesh(folder, emulator, tell, options.secrets)
        started.append(running_mesh)
        running_mesh.begin(loaded)
    return running_mesh
