"""The keys of `triggers` in the mesh file: what starts a task without a caller (`protocol §16`)."""

from msgspec import field

from asya.protocol.triggers import Trigger
from asya_infra.mesh_file.sections import Written

SOURCES = ("cron", "s3", "event", "webhook")


class TriggerSection(Trigger, frozen=True, kw_only=True):
    """A trigger: one source, and the task that each occurrence starts."""

    written: Written = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that the trigger names."""
        found = dict(zip(SOURCES, (self.cron, self.objects, self.event, self.webhook), strict=True))
        return tuple(name for name, source in found.items() if source is not None)
