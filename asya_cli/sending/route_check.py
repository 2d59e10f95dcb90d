"""Warns of hops that will fail, before an envelope is sent (`protocol §5.12`)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from asya.protocol.envelope import Envelope
    from asya.protocol.mesh_table import MeshTable


def route_warnings(envelope: Envelope, mesh_file: Path, namespace: str) -> Iterator[str]:
    """Check the route of an envelope against the mesh file, if that is the file of the mesh; handlers may set other routes."""
    from asya_infra.mesh_file import MeshFileError, load_mesh
    from asya_infra.mesh_file.table import to_table

    if not mesh_file.exists():
        return
    try:
        loaded = load_mesh(mesh_file, "")
        if namespace.startswith(f"{loaded.mesh.namespace}-"):
            loaded = load_mesh(mesh_file, namespace.removeprefix(f"{loaded.mesh.namespace}-"))
    except MeshFileError as error:
        yield f"the route is not checked, because {mesh_file} is invalid: {error}"
        return
    if loaded.namespace == namespace:
        yield from _problems(envelope, to_table(loaded))


def _problems(envelope: Envelope, table: MeshTable) -> Iterator[str]:
    from asya.function.targets import TargetError, actual_actor, check_next

    # The command itself fails if there is no first actor.
    route = [actual_actor(envelope, actor) for actor in (envelope.route.curr, *envelope.route.next)]
    for sender, target in pairwise(route):
        try:
            if sender in table.actors:
                check_next(table, sender, target)
        except TargetError as error:
            yield str(error)
