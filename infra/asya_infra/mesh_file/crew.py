"""Decides which actors of the crew a mesh has (`protocol §1.crew`)."""

import re
from collections.abc import Iterable, Iterator

from asya.protocol import names
from asya_infra.mesh_file.load import LoadedMesh
from asya_infra.mesh_file.mesh_model import MeshFile

_MODULE = ".py"
_NAMED = re.compile("|".join(map(re.escape, sorted(names.ROUTABLE_CREW))))
_FAN_OUT = re.compile(r"\bfan_out\b")
# The word may mean something else in a module that does not import from the layer.
_BRANCHES = re.compile(r"(?s)(?=.*\basya\b).*\bbranches\b")


def crew_of(loaded: LoadedMesh) -> frozenset[str]:
    """Return the end actors, and those actors of the routable crew that the mesh file or the code of its actors names."""
    mesh = loaded.mesh
    found = {*names.END_ACTORS, *mesh.crew.routable, *_named_by_file(mesh), *_named_by_code(loaded)}
    if names.PAUSE in found or any(_pauses(mesh)):
        found.add(names.RESUME)
    return frozenset(found & {*names.END_ACTORS, *names.ROUTABLE_CREW})


def _named_by_file(mesh: MeshFile) -> Iterator[str]:
    yield from mesh.actors
    yield from mesh.sink.hooks
    for route in _routes(mesh):
        yield from route


def _routes(mesh: MeshFile) -> Iterator[Iterable[str]]:
    yield from (tool.route for tool in mesh.tools.values())
    yield from (trigger.route for trigger in mesh.triggers.values())
    for actor in mesh.actors.values():
        yield actor.can_send_to or ()
        yield from (policy.then_route or () for policy in actor.resiliency.policies.values())


def _pauses(mesh: MeshFile) -> Iterator[bool]:
    """Yield for each actor whether it pauses tasks: by a question, or by a wait that stops the deadline."""
    for actor in mesh.actors.values():
        yield actor.kind == "pause" or (actor.wait is not None and actor.wait.deadline == "stands")


def _named_by_code(loaded: LoadedMesh) -> Iterator[str]:
    """Yield the names in the modules of the actors. A handler may put any of them into a route, and `fan_out` and `branches` do."""
    for code in loaded.deployed_code():
        for file in code.files:
            if file.target.endswith(_MODULE):
                text = file.source.read_text(encoding="utf-8", errors="replace")
                yield from _NAMED.findall(text)
                if _FAN_OUT.search(text) or _BRANCHES.match(text):
                    yield names.FAN_IN
