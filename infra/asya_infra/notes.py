"""Notes on a valid mesh file: defaults that its author should know of before a deployment. Synthesis prints them."""

from collections.abc import Iterator

from asya.heavy.job_python import JOB_PYTHON
from asya_infra.agent_limits import agent_notes
from asya_infra.build.code_files import described
from asya_infra.build.packages import MAKE_HASHES, REQUIREMENTS, names_packages
from asya_infra.mesh_file import LoadedMesh
from asya_infra.mesh_file.user_code import find_stops
from asya_infra.permissions.resources import api_of
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for


def notes(loaded: LoadedMesh) -> Iterator[str]:
    """Yield each note in one line, with the file and the key to set."""
    if not loaded.mesh.operators:
        yield (
            f"{loaded.path}: operators: names nobody, so every caller that signs its calls sees and acts on all tasks; name the "
            "operators, such as [arn:aws:iam::123456789012:role/Admin]"
        )
    elif loaded.mesh.gateway.starts is None:
        yield (
            f"{loaded.path}: gateway.starts: is left out, so every caller may start a task at any actor, also at one behind a "
            "pause; name the actors, or [] for tools alone"
        )
    yield from code_notes(loaded)
    if not loaded.mesh.requires_hashes:
        yield from _without_hashes(loaded)
    yield from loaded.notes
    for host in loaded.mesh.gateway.foreign_gateways:
        if api_of(host) is None:
            yield (
                f"{loaded.path}: gateway.foreign_gateways: x-reports gets no permission to call {host}, because only the "
                "address of an API says which one it is; name the host of the output GatewayUrl of that mesh"
            )


def code_notes(loaded: LoadedMesh) -> Iterator[str]:
    """Yield the notes on the code and the tools of the mesh, which hold on the local cloud too."""
    yield from agent_notes(loaded)
    for found in loaded.deployed_code():
        yield from described(found)
    yield from _stand_ins(loaded)
    for name, actor in loaded.mesh.actors.items():
        for path, line in find_stops(loaded.jobs_folder, actor.spark.job) if actor.spark else ():
            yield (
                f"{path}:{line}: stop() does nothing in a job of actor {name!r}, because its run stops Spark after the last "
                "envelope; remove the call"
            )


def _stand_ins(loaded: LoadedMesh) -> Iterator[str]:
    actors = loaded.mesh.actors.values()
    users = (
        (FUNCTION_PYTHON, "functions", any(actor.handler for actor in actors)),
        (JOB_PYTHON, "job runs", any(actor.spark for actor in actors)),
    )
    for wanted, title, is_used in users:
        if is_used and (unchecked := interpreter_for(wanted).unchecked(title)):
            yield f"{loaded.path}: {unchecked}"


def _without_hashes(loaded: LoadedMesh) -> Iterator[str]:
    actors = loaded.mesh.actors.values()
    folders = (
        (loaded.code_folder, any(actor.handler for actor in actors)),
        (loaded.jobs_folder, any(actor.spark for actor in actors)),
    )
    for folder, is_deployed in folders:
        if is_deployed and names_packages(folder / REQUIREMENTS):
            yield (
                f"{loaded.path}: requirements_hashes: is optional, so the package index decides what the packages of "
                f"{folder / REQUIREMENTS} contain; pin them ({MAKE_HASHES}) and set it to required"
            )
