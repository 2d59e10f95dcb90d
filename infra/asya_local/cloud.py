"""Bringing a local cloud up and taking it down."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from asya_infra.mesh_file import LoadedMesh, MeshFileError, load_mesh
from asya_local.connection import LocalConnection
from asya_local.errors import LocalCloudError
from asya_local.installation import Installation, UpOptions
from asya_local.keys import read_keys
from asya_local.processes import end_all, end_orphans
from asya_local.servers import running_servers
from asya_local.signals import sigint_ignored
from asya_local.state_folder import StateFolder
from asya_local.steps import Steps
from asya_local.tools import find_tools

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["UpOptions", "down", "up"]


def up(mesh: Path, state: Path, options: UpOptions | None = None, steps: Steps | None = None) -> LocalConnection:
    """Bring a local cloud up with a mesh deployed on it, or deploy the mesh anew to the one that is up.

    Returns when messages are being taken. A cloud that was not up before and does not come up leaves no process.

    Raises:
        LocalCloudError: What is missing or went wrong, and what to do.
    """
    loaded, folder = _load(mesh), StateFolder.at(state)
    tools = find_tools(spark=any(actor.spark is not None for actor in loaded.mesh.actors.values()))
    installation = Installation(folder, tools, loaded, options or UpOptions(), steps or Steps())
    with folder.locked():
        servers = running_servers(folder)
        known = LocalConnection.read(folder.connection)
        if servers is not None and known is not None:
            _check_same(folder, known, loaded, installation.options)
            end_orphans(folder)
            installation.synthesize()
            return installation.deploy(servers, read_keys(folder.keys)["deployer"])
        try:
            _end(folder)
            return installation.deploy(*installation.start())
        except BaseException:
            with sigint_ignored():
                _end(folder)
            raise


def down(state: Path) -> int:
    """End every process of a local cloud, also of one whose `up` or servers were killed, and remove what they left.

    Logs, and files that the cloud did not make, stay. Returns the number of processes that were ended.
    """
    folder = StateFolder.at(state)
    if not folder.root.is_dir():
        return 0
    with folder.locked(), sigint_ignored():
        return _end(folder)


def _load(mesh: Path) -> LoadedMesh:
    try:
        return load_mesh(mesh)
    except MeshFileError as error:
        raise LocalCloudError(str(error)) from error


def _check_same(folder: StateFolder, known: LocalConnection, loaded: LoadedMesh, options: UpOptions) -> None:
    first = f"Run `asya local down --state {folder.root}` first, or use another --state."
    if known.namespace != loaded.namespace:
        raise LocalCloudError(f"The mesh {known.namespace} is up in {folder.root}, not {loaded.namespace}. {first}")
    if known.auth != options.auth:
        raise LocalCloudError(f"The cloud in {folder.root} is up {'with' if known.auth else 'without'} --auth. {first}")


def _end(folder: StateFolder) -> int:
    count = end_all(folder)
    for path in (folder.connection, folder.keys, folder.processes, folder.outputs):
        path.unlink(missing_ok=True)
    for path in (folder.temporary, folder.ministack, folder.cdk_home, folder.emr / "drivers"):
        shutil.rmtree(path, ignore_errors=True)
    return count
