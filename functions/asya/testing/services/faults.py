"""The faults of a simulated cloud, and how long its calls take."""

from dataclasses import dataclass, field
from enum import Enum
from random import Random


class Fault(Enum):
    """The fault of one call."""

    NONE = "no fault"
    CRASH_BEFORE = "the process crashes before the call"
    CRASH_AFTER = "the process crashes after the call"
    REFUSED = "refused: throttled or 5xx, without effect"
    ANSWER_LOST = "executed, and the response is lost"
    REPEATED = "executed, the response is lost, and the SDK repeats the call"
    IN_PART = "executed in part"


@dataclass(frozen=True)
class FaultProfile:
    """The rates of faults, per call.

    Attributes:
        duplicates: rate of messages that SQS delivers twice.
        lost_acks: rate of processed messages that SQS does not delete.
        slowness: the longest usual duration of a call, in seconds.
        stalls: rate of calls that take up to 40 s.
        until: virtual seconds after which no faults occur, so that the mesh can finish.
        poison: whether handlers may crash their process.
        outages: (service, from, until): the service refuses all calls in that time.
        report_outage: (from, until): nothing consumes the report queues in that time; None without an outage.
        service_off: (service, from, until): as an outage, beside all other faults and beyond `until`; None without one.
    """

    name: str = "fault-free"
    crashes: float = 0.0
    refusals: float = 0.0
    lost_responses: float = 0.0
    repeats: float = 0.0
    partial_calls: float = 0.0
    duplicates: float = 0.0
    lost_acks: float = 0.0
    slowness: float = 0.03
    stalls: float = 0.0
    until: float = 0.0
    poison: bool = False
    outages: tuple[tuple[str, float, float], ...] = ()
    report_outage: tuple[float, float] | None = None
    service_off: tuple[str, float, float] | None = None

    @property
    def is_fault_free(self) -> bool:
        """Whether no service fails and only handlers crash processes."""
        return self.until == 0.0 and self.service_off is None

    @property
    def kills_processes(self) -> bool:
        """Whether processes may die: by a fault, by a call that takes too long, or by a handler."""
        return self.crashes > 0 or self.stalls > 0 or self.poison


@dataclass
class Faults:
    """Draws the fault and the duration of each call."""

    random: Random
    profile: FaultProfile
    drawn: dict[str, int] = field(default_factory=dict)

    def draw(self, service: str, what: str, seconds: float) -> Fault:
        """Draw the fault of a call at this time.

        Args:
            what: what the call does, such as `PutObject results/succeeded/a.json`.
        """
        profile = self.profile
        if profile.service_off is not None:
            off, start, end = profile.service_off
            if off == service and start <= seconds < end:
                return self._counted(Fault.REFUSED)
        if seconds >= profile.until:
            return Fault.NONE
        if any(name == service and start <= seconds < end for name, start, end in profile.outages):
            return self._counted(Fault.REFUSED)
        dice = self.random.random()
        for fault, rate in (
            (Fault.CRASH_BEFORE, profile.crashes / 2),
            (Fault.CRASH_AFTER, profile.crashes / 2),
            (Fault.REFUSED, profile.refusals),
            (Fault.ANSWER_LOST, profile.lost_responses),
            (Fault.REPEATED, profile.repeats),
            (Fault.IN_PART, profile.partial_calls),
        ):
            if dice < rate:
                return self._counted(fault)
            dice -= rate
        return Fault.NONE

    def happens(self, rate: float, seconds: float) -> bool:
        """Draw whether an event of this rate occurs at this time."""
        return seconds < self.profile.until and self.random.random() < rate

    def loses_ack(self, message_id: str, seconds: float) -> bool:
        """Draw whether SQS keeps a processed message at this time."""
        return self.happens(self.profile.lost_acks, seconds)

    def kills(self, actor: str) -> bool:
        """Whether a process of this actor dies once it has processed a batch, before SQS deletes the messages."""
        return False

    def duplicates(self, queue: str, seconds: float) -> bool:
        """Draw whether SQS delivers a message of this queue twice."""
        return self.happens(self.profile.duplicates, seconds)

    def latency(self, seconds: float) -> float:
        """Draw the duration of a call at this time, in seconds."""
        if self.happens(self.profile.stalls, seconds):
            return self.random.uniform(1.0, 40.0)
        return self.random.uniform(0.001, self.profile.slowness)

    def _counted(self, fault: Fault) -> Fault:
        self.drawn[fault.name] = self.drawn.get(fault.name, 0) + 1
        return fault
