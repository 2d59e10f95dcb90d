"""Makes the triggers of the actor table from those of the mesh file (`protocol §16`)."""

from asya.protocol import triggers as table
from asya_infra.mesh_file.load import LoadedMesh
from asya_infra.mesh_file.triggers.model import EventSection, ObjectsSection, TriggerSection, WebhookSection


def to_triggers(loaded: LoadedMesh) -> dict[str, table.Trigger]:
    """Return the triggers of a mesh by name. In a stage they are off, unless `run_triggers` says so."""
    mesh = loaded.mesh
    is_stage = loaded.namespace != mesh.namespace
    runs = not is_stage if mesh.run_triggers is None else mesh.run_triggers
    return {name: _trigger(section, runs=runs) for name, section in mesh.triggers.items()}


def _trigger(section: TriggerSection, *, runs: bool) -> table.Trigger:
    return table.Trigger(
        tool=section.tool,
        route=section.route,
        timeout=section.timeout,
        enabled=section.enabled and runs,
        payload=section.payload,
        input=section.input,
        overlap=section.overlap,
        by=section.by,
        debounce=section.debounce,
        batch=section.batch,
        schedule=table.Schedule(cron=section.cron, timezone=section.timezone, catch_up=section.catch_up)
        if section.cron is not None
        else None,
        objects=_objects(section.s3) if section.s3 is not None else None,
        event=_event(section.event) if section.event is not None else None,
        webhook=_webhook(section.webhook) if section.webhook is not None else None,
    )


def _objects(section: ObjectsSection) -> table.ObjectSource:
    return table.ObjectSource(bucket=section.bucket, prefix=section.prefix, suffix=section.suffix)


def _webhook(section: WebhookSection) -> table.Webhook:
    return table.Webhook(secret=section.secret, signature=section.signature, header=section.header, id=section.id)


def _event(section: EventSection) -> table.EventPattern:
    return table.EventPattern(pattern=section.pattern(), bus=section.bus)
