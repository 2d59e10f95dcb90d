"""What every function of a mesh stands on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from asya.function.aws import clients
from asya.function.aws.settings import Settings
from asya.function.aws.telemetry import Telemetry, build_traces
from asya.function.lambdas.environment import REAL, Environment
from asya.protocol.keys import INBOX_PREFIX

if TYPE_CHECKING:
    from asya.function.aws.claim_check import ClaimCheck
    from asya.function.aws.submission_sender import SubmissionSender
    from asya.function.hop import Delivery


@dataclass(frozen=True)
class Function:
    """A function in one process. Each part is built when it is first used, and only once.

    What builds a capability takes this object, and nothing that it has.

    Attributes:
        settings: the settings of the function.
        environment: its clock, randomness and threads.
        given_telemetry: its log, metrics and spans; None for those of Lambda.
    """

    settings: Settings
    environment: Environment = REAL
    given_telemetry: Telemetry | None = None

    def now(self) -> datetime:
        """The current time; only entry points read it and pass it on."""
        return self.environment.now()

    @cached_property
    def telemetry(self) -> Telemetry:
        """The log, metrics and spans of this function."""
        if self.given_telemetry is not None:
            return self.given_telemetry
        traces = build_traces(self.settings, self.environment.monotonic)
        return Telemetry(self.settings.namespace, self.settings.actor, traces)

    @property
    def warn(self) -> Callable[[str], None]:
        """Logs a warning."""
        return self.telemetry.log.warning

    # Both are imported for the functions that start tasks: they would lengthen the cold starts of the others.

    @cached_property
    def inbox(self) -> "ClaimCheck":
        """The claim check of first messages: their senders may write only under `inbox/` (`protocol §4`)."""
        from asya.function.aws.claim_check import ClaimCheck

        return ClaimCheck(clients.s3(), self.settings.bucket, prefix=INBOX_PREFIX)

    def submissions(self, seal: Callable[["Delivery"], "Delivery"], *, diverts: bool = False) -> "SubmissionSender":
        """Build the sender of first messages, and of released ones.

        Args:
            seal: gives a delivery the key of its envelope.
            diverts: whether an envelope that is too large without its payload goes to x-sump instead.
        """
        from asya.function.aws.submission_sender import SubmissionSender

        def prepared(delivery: "Delivery") -> "Delivery":
            return self.inbox.offload(seal(delivery))

        return SubmissionSender(clients.sqs(), self.settings.queue_url, prepared, diverts=diverts)
