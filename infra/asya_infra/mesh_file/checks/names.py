"""Checks names: DNS labels, reserved names, and the length and uniqueness of queue names (`protocol §1`, `§4`)."""

from collections.abc import Iterator

from asya import registry
from asya.protocol import names
from asya_infra.mesh_file.checks.context import Context, Finding


def check_names(context: Context) -> Iterator[Finding]:
    """Check the namespace, the names of actors and the names of their queues."""
    try:
        names.check_label(context.namespace, "namespace")
    except ValueError as error:
        yield ("namespace",), str(error)
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
