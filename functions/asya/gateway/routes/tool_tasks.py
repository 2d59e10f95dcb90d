"""What the protocols for models and agents do with tasks, in one object."""

from collections.abc import Callable
from dataclasses import dataclass

from asya.gateway.access import AccessRules
from asya.gateway.http.origin import Origins
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.resume import ResumeRoutes
from asya.gateway.routes.tools import ToolCalls


@dataclass(frozen=True, slots=True)
class ToolTasks:
    """Starts, cancels and resumes the tasks of tools, for callers whose rights it knows.

    Attributes:
        origins: name the gateway and the trace of new envelopes.
        warn: logs a problem of the tasks table.
    """

    calls: ToolCalls
    cancels: CancelRoutes
    resumes: ResumeRoutes
    access: AccessRules
    origins: Origins
    warn: Callable[[str], None]
