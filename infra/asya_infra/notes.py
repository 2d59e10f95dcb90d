"""Notes on a valid mesh file: defaults that its author should know of. Synthesis prints them.

Some are on tools that clients of the Model Context Protocol refuse, often with all other tools of the mesh.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from asya.capabilities.mcp.tools import REFUSED_AT_TOP, listed, wrapper_of
from asya.heavy.job_python import JOB_PYTHON
from asya_infra.build.code_files import described
from asya_infra.build.packages import MAKE_HASHES, REQUIREMENTS, names_packages
from asya_infra.mesh_file import LoadedMesh
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.forms import format_duration
from asya_infra.mesh_file.spark import sized_sections
from asya_infra.mesh_file.spark_settings import meant
from asya_infra.mesh_file.user_code import find_endless_waits, find_stops
from asya_infra.permissions.needs import api_of
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for

NAME_LENGTH = 64
"""Characters that Claude Desktop, Amazon Bedrock, Gemini and OpenAI take; the protocol allows 128."""
NAME_WITH_SERVER = 60
"""Characters that Cursor takes, with the name of the server."""
DESCRIPTION_LENGTH = 1024
"""Characters that OpenAI takes."""

_DEFAULT_TIMEOUT = ActorSection().timeout
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_FIRST = re.compile(r"[A-Za-z_]")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def agent_notes(loaded: LoadedMesh) -> Iterator[str]:
    """Yield a note for each limit that a tool exceeds."""
    server = f"asya-{loaded.mesh.namespace}"
    for name, tool in loaded.mesh.tools.items():
        for problem in (
            *_of_name(name, server),
            *_of_description(tool.description),
            *_of_schema(dict(tool.json_schema)),
        ):
            yield f"{loaded.path}: tools.{name}: {problem}"


def _of_name(name: str, server: str) -> Iterator[str]:
    if len(name) > NAME_LENGTH:
        yield (
            f"its name has {len(name)} characters; Claude Desktop, Amazon Bedrock, Gemini and OpenAI take {NAME_LENGTH}, and "
            "refuse all tools of the mesh; shorten it"
        )
    elif len(server) + len(name) > NAME_WITH_SERVER:
        yield (
            f"its name and that of the server, {server}, have {len(server) + len(name)} characters; Cursor leaves out tools "
            f"with more than {NAME_WITH_SERVER}; shorten it, or give the server a short name in the client"
        )
    if not _NAME.fullmatch(name):
        yield (
            "its name has a '.'; Claude, Amazon Bedrock and OpenAI take letters, digits, '_' and '-', and refuse all tools of the "
            "mesh; rename it"
        )
    if not _FIRST.match(name):
        yield "its name should begin with a letter or '_'; Gemini refuses all tools of the mesh otherwise; rename it"


def _of_description(text: str) -> Iterator[str]:
    if len(text) > DESCRIPTION_LENGTH:
        yield (
            f"its description has {len(text)} characters; OpenAI takes {DESCRIPTION_LENGTH}, and refuses all tools of the mesh; "
            "shorten it"
        )


def _of_schema(schema: dict[str, Any]) -> Iterator[str]:
    shown, wrapper = listed(schema), wrapper_of(schema)
    if wrapper is not None:
        top = next((key for key in REFUSED_AT_TOP if key in schema), "type")
        yield (
            f"its input_schema has {top!r} at the top level, which Claude and OpenAI refuse; /mcp lists it with all arguments "
            f"in the field {wrapper!r}; a model with fields of its own is shown as it is"
        )
        return
    wrong = [field for field in _fields(shown) if not _PROPERTY.fullmatch(field)]
    if wrong:
        yield (
            f"its argument {wrong[0]!r} is refused by Claude with all tools of the mesh: the name should have 1 to 64 letters, "
            "digits, '_', '-' or '.'; rename it"
        )
    if "$ref" in _keys(shown):
        yield (
            "its input_schema refers to itself; clients with Gemini, such as Google's ADK, read no schema without an end; limit "
            "the depth, or take a dict"
        )


def _fields(schema: Mapping[str, Any]) -> list[str]:
    return list(schema.get("properties", {}))


def _keys(schema: Any) -> Iterator[str]:
    """The keys at all levels."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            yield key
            yield from _keys(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _keys(each)


def _misspelled_settings(loaded: LoadedMesh) -> Iterator[str]:
    for name, actor in loaded.mesh.actors.items():
        sections = sized_sections(actor.spark) if actor.spark is not None else ()
        for setting in dict.fromkeys(chain.from_iterable(spark.conf for _, spark in sections)):
            if (right := meant(setting)) is not None:
                yield (
                    f"{loaded.path}: actors.{name}.spark.conf: Spark has no setting {setting!r}, and would ignore it; did you "
                    f"mean {right!r}?"
                )


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
    yield from _misspelled_settings(loaded)
    yield from _late_actors(loaded)
    for name, actor in loaded.mesh.actors.items():
        for path, line, method in find_endless_waits(loaded.jobs_folder, actor.spark.job) if actor.spark else ():
            yield (
                f"{path}:{line}: {method}() in a job of actor {name!r} waits for a stream without an end, until the time limit "
                "of the envelope; read what is there with trigger(availableNow=True), or wait for some seconds"
            )
        for path, line in find_stops(loaded.jobs_folder, actor.spark.job) if actor.spark else ():
            yield (
                f"{path}:{line}: stop() does nothing in a job of actor {name!r}, because its run stops Spark after the last "
                "envelope; remove the call"
            )


def _late_actors(loaded: LoadedMesh) -> Iterator[str]:
    """Yield a note for each actor that may work beyond the deadline of all tools that lead to it, but for handlers by default."""
    for name, actor in loaded.mesh.actors.items():
        if actor.spark is None and actor.timeout == _DEFAULT_TIMEOUT:
            continue
        tools = {title: tool.timeout for title, tool in loaded.mesh.tools.items() if name in (tool.route or (title,))}
        if tools and actor.timeout > max(tools.values()):
            tool = max(tools, key=lambda title: tools[title])
            yield (
                f"{loaded.path}: actors.{name}.timeout: {format_duration(actor.timeout)} is more than the deadline of the tool "
                f"{tool!r}, {format_duration(tools[tool])}, which ends the task before; shorten it, or raise tools.{tool}.timeout"
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
