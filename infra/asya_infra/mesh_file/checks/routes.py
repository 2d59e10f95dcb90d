"""Checks names, routes, tools and the card for other agents."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from asya import registry
from asya.capabilities.mcp.types import OWN_TOOL_NAMES
from asya.protocol import names
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.source import Location, did_you_mean


def check_names(context: Context) -> Iterator[Finding]:
    """Check the namespace, the names of actors and the names of their queues."""
    try:
        names.check_label(context.namespace, "namespace")
    except ValueError as error:
        yield ("namespace",), str(error)
    longest = names.dlq_name(context.namespace, max(context.registry.own_queues, key=len))
    if len(longest) > names.QUEUE_NAME_LIMIT:
        yield (
            ("namespace",),
            f"the queue name {longest!r} has {len(longest)} characters, but the limit of SQS is {names.QUEUE_NAME_LIMIT}; "
            f"make the namespace {len(longest) - names.QUEUE_NAME_LIMIT} shorter",
        )
    owners: dict[str, str] = {}
    for actor, section in context.mesh.actors.items():
        place = ("actors", actor)
        try:
            names.check_label(actor, "actor")
        except ValueError as error:
            yield place, str(error)
            continue
        if names.is_reserved(actor) and section.kind != registry.PRODUCT.crew_of_kinds.get(actor, "none"):
            yield place, f"the name {actor!r} is reserved for the mesh's own actors; rename the actor"
        yield from _queues(context.namespace, actor, owners)


def _queues(namespace: str, actor: str, owners: dict[str, str]) -> Iterator[Finding]:
    longest = names.dlq_name(namespace, actor)
    if len(longest) > names.QUEUE_NAME_LIMIT:
        excess = len(longest) - names.QUEUE_NAME_LIMIT
        yield (
            ("actors", actor),
            f"its queue name {longest!r} has {len(longest)} characters, but the limit of SQS is "
            f"{names.QUEUE_NAME_LIMIT}; make the actor's name or the namespace {excess} shorter",
        )
    for queue in (names.queue_name(namespace, actor), longest):
        if queue in owners:
            yield (
                ("actors", actor),
                f"its queue {queue!r} is also a queue of actor {owners[queue]!r}; rename one of them",
            )
        owners.setdefault(queue, actor)


ANY = "*"


def check_routes(context: Context) -> Iterator[Finding]:
    """Check that each actor in a route exists and may stand in a route."""
    mesh = context.mesh
    for tool, section in mesh.tools.items():
        if section.route:
            yield from _route(context, section.route, ("tools", tool, "route"))
        elif tool not in mesh.actors:
            yield ("tools", tool, "route"), f"missing, and there is no actor {tool!r} to use as the route"
    for trigger, trigger_section in mesh.triggers.items():
        yield from _route(context, trigger_section.route, ("triggers", trigger, "route"))
    yield from _route(context, mesh.sink.hooks, ("sink", "hooks"))
    for name, actor in mesh.actors.items():
        for policy, policy_section in actor.resiliency.policies.items():
            place: Location = ("actors", name, "resiliency", "policies", policy, "then_route")
            yield from _route(context, policy_section.then_route or (), place)
        if actor.can_send_to is not None and actor.can_send_to != (ANY,):
            yield from _route(context, actor.can_send_to, ("actors", name, "can_send_to"))


def _route(context: Context, route: Sequence[str], place: Location) -> Iterator[Finding]:
    known = [*context.mesh.actors, *names.ROUTABLE_CREW]
    for index, actor in enumerate(route):
        if actor == ANY and place[-1] == "can_send_to":
            yield (*place, index), f"{ANY!r} means every actor; remove it, or all others"
        elif not names.is_routable(actor):
            allowed = ", ".join(sorted(names.ROUTABLE_CREW))
            yield (*place, index), f"{actor!r} is reserved; a route may contain these actors of the mesh: {allowed}"
        elif actor not in known:
            yield (*place, index), f"there is no actor {actor!r}{did_you_mean(actor, known)}"


# The form of a name in the Model Context Protocol.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def check_tools(context: Context) -> Iterator[Finding]:
    """Check the name and the input schema of each tool."""
    for tool, section in context.mesh.tools.items():
        yield from _name(tool)
        place: Location = ("tools", tool, "input_schema")
        yield from _schema(dict(section.json_schema), place)


def _name(tool: str) -> Iterator[Finding]:
    if not _NAME.fullmatch(tool):
        yield ("tools", tool), "a tool name should have 1 to 128 letters, digits, '_', '-' or '.'"
    elif tool in OWN_TOOL_NAMES:
        yield ("tools", tool), f"the gateway has its own tool {tool!r}; rename this one"


def _schema(schema: dict[str, Any], place: Location) -> Iterator[Finding]:
    # A late import: most mesh files have no tools.
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(schema, retriever=_retrieve_nothing)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        path = getattr(error, "instance_path", [])
        yield (*place, *path), f"not a valid JSON Schema: {getattr(error, 'message', error)}"


def _retrieve_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is an external reference; copy its schema to $defs")


def check_agent(context: Context) -> Iterator[Finding]:
    """Check that each skill of the agent card is a tool of the mesh."""
    agent, tools = context.mesh.agent, list(context.mesh.tools)
    for number, skill in enumerate((agent and agent.skills) or ()):
        skill_id = skill.get("id")
        if not isinstance(skill_id, str):
            yield ("agent", "skills", number), "has no id; set it to the name of a tool"
        elif skill_id not in tools:
            yield ("agent", "skills", number, "id"), f"there is no tool {skill_id!r}{did_you_mean(skill_id, tools)}"
