"""Starts and stops a local cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_local.errors import LocalCloudError
from asya_local.installation import Installation, UpOptions
from asya_local.processes import clean_up, end_orphans, signals_ignored
from asya_local.secret_file import FILE_NAME, secret_values
from asya_local.servers import running_servers
from asya_local.sources import load
from asya_local.state_folder import LocalConnection, StateFolder
from asya_local.steps import Steps
from asya_local.tools import find_tools

if TYPE_CHECKING:
    from pathlib import Path

    from asya_infra.mesh_file import LoadedMesh

__all__ = ["UpOptions", "down", "up"]


def up(mesh: Path, state: Path, options: UpOptions | None = None, steps: Steps | None = None) -> LocalConnection:
    """Start a local cloud and deploy the mesh, or deploy the mesh again to a running cloud.

    A cloud that runs gets what has changed: the code of handlers and jobs, or all of the templates. A cloud that starts again
    starts with the state after its first deployment, if the templates are the same.

    Returns when the mesh takes messages. A cloud that fails to start leaves no process.

    Raises:
        LocalCloudError: The mesh file is invalid, a tool is missing, or a step fails.
    """
    options = options or UpOptions()
    loaded, folder = load(mesh, options.stage), StateFolder.at(state)
    secrets = secret_values(loaded.mesh, options.secrets or folder.root / FILE_NAME)
    tools = find_tools(spark=any(actor.spark is not None for actor in loaded.mesh.actors.values()))
    installation = Installation(folder, tools, loaded, options, steps or Steps(), secrets)
    with folder.locked():
        servers = running_servers(folder)
        connection = LocalConnection.read(folder.connection)
        if servers is not None and connection is not None and not folder.dev.exists():
            _require_same_cloud(folder, connection, loaded)
            end_orphans(folder)
            return installation.update(servers, connection)
        try:
            clean_up(folder)
            return installation.start()
        except BaseException:
            with signals_ignored():
                clean_up(folder)
            raise


def down(state: Path) -> int:
    """Stop all processes of a local cloud, also after a crash, and remove its temporary files.

    Logs, keys, the snapshot and foreign files stay. Returns the number of stopped processes.
    """
    folder = StateFolder.at(state)
    if not folder.root.is_dir():
        return 0
    with folder.locked(), signals_ignored():
        return clean_up(folder)


def _require_same_cloud(folder: StateFolder, connection: LocalConnection, loaded: LoadedMesh) -> None:
    if connection.namespace != loaded.namespace:
        raise LocalCloudError(
            f"The cloud in {folder.root} runs the mesh {connection.namespace}, not {loaded.namespace}. "
            f"Run `asya local down --state {folder.root}` first, or use another --state."
        )
