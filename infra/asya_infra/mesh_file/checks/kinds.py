"""Checks that each actor is light, heavy or of one special kind, and that its keys fit its kind."""

from collections.abc import Iterator

from asya.registry import Registry
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.checks.context import Context, Finding


def check_kinds(context: Context) -> Iterator[Finding]:
    """Check that each actor has one kind, and only the keys of that kind."""
    for name, actor in context.mesh.actors.items():
        for key, message in (*_findings(actor), *_options(actor, context.registry)):
            yield (("actors", name, key) if key else ("actors", name)), message


def _findings(actor: ActorSection) -> Iterator[tuple[str, str]]:
    if actor.kind == "end":
        yield from _end_actor(actor)
    else:
        named = [key for key in ("handler", "spark", "kind") if getattr(actor, key) is not None]
        if not named:
            yield "", "needs handler (a light actor), spark (a heavy actor) or kind (a special actor)"
        elif len(named) > 1:
            yield named[-1], f"has {' and '.join(named)}; keep one of them"
        if not actor.validate:
            yield "validate", "only a user's own end actor (kind: end) may turn off validation"
    if actor.responses != "plain" and (actor.handler is None or actor.handler_mode != "payload"):
        yield "responses", "is for a handler that gives payloads (handler_mode: payload)"
    if actor.fan_in is not None and actor.fan_in.quorum is not None and actor.fan_in.on_failure == "fail":
        yield "fan_in", "has a quorum, which needs on_failure: partial"
    for kind in ("fan_in", "pause", "wait"):
        if getattr(actor, kind) is not None and actor.kind != kind:
            yield kind, f"needs kind: {kind}"


def _options(actor: ActorSection, registry: Registry) -> Iterator[tuple[str, str]]:
    """Check the options of capabilities that the mesh file names."""
    for key, option in registry.options.items():
        if key not in actor.written:
            continue
        if option.kinds and actor.kind not in option.kinds:
            yield key, f"needs kind: {' or '.join(option.kinds)}"
        elif option.handler_modes and actor.handler and actor.handler_mode not in option.handler_modes:
            yield key, f"needs handler_mode: {' or '.join(option.handler_modes)}"


def _end_actor(actor: ActorSection) -> Iterator[tuple[str, str]]:
    """Check a user's end actor: its handler needs the whole, unvalidated envelope with its status (`protocol §14`)."""
    if actor.handler is None:
        yield "", "an end actor (kind: end) needs a handler"
    if actor.spark is not None:
        yield "spark", "an end actor (kind: end) cannot be heavy; give it a handler"
    if actor.handler_mode == "payload":
        yield "handler_mode", "an end actor (kind: end) needs handler_mode: envelope, or envelope-v1"
    if actor.validate:
        yield "validate", "an end actor (kind: end) needs validate: false"
