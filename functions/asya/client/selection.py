"""Which mesh a program means, with the same defaults as the command."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from asya.client.connection import find_on_aws, read_local
from asya.client.defaults import read_defaults
from asya.client.errors import MeshError

if TYPE_CHECKING:
    from asya.client.connection import Connection

DEFAULT_STATE = ".asya"


def select(
    name: str | None, state: str | Path | None = None, region: str | None = None, profile: str | None = None
) -> Connection:
    """Connect to the mesh that a program names.

    A state folder selects its local cloud. A name selects the local cloud of the default state folder, if that runs a mesh of this
    namespace and neither region nor profile is given, and else the mesh on AWS. Without both, the environment and `asya.toml`
    select, as for the command.

    Args:
        name: The namespace of the mesh, with its stage, such as `shop-prod`.
        state: The state folder of a local cloud.
        region: The AWS region; by default that of the environment and of the AWS configuration.
        profile: The profile of the AWS configuration.

    Raises:
        MeshError: There is no such mesh, or the arguments select two.
    """
    if state is not None:
        if region or profile:
            raise MeshError("a local cloud has no region and no profile", "Give a state folder, or a mesh on AWS.")
        connection = read_local(Path(state))
        if name is not None and connection.namespace != name:
            raise MeshError(f"the local cloud in {state} runs the mesh {connection.namespace!r}, and not {name!r}")
        return connection
    names_aws = bool(region or profile)
    defaults = read_defaults([], os.environ, Path.cwd())
    region, profile = region or defaults.get("region"), profile or defaults.get("profile")
    namespace = name or defaults.get("namespace")
    folder = Path(defaults.get("state") or DEFAULT_STATE)
    if namespace is None:
        return read_local(folder)
    if name is None or names_aws:
        return find_on_aws(namespace, region, profile)
    local = _local(folder)
    if local is not None and local.namespace == name:
        return local
    try:
        return find_on_aws(name, region, profile)
    except MeshError as error:
        here = f"{folder} runs the mesh {local.namespace!r}" if local else f"no mesh is running in {folder}"
        local_advice = "For a local mesh, run `asya dev` in this folder, or name its folder with `state`."
        raise type(error)(f"{error.problem}; {here}", f"{error.advice} {local_advice}") from error


def _local(folder: Path) -> Connection | None:
    """Return the local cloud in a state folder; None if there is none, or its file is not readable."""
    with suppress(MeshError):
        return read_local(folder)
    return None
