"""Faults of service calls, drawn from the seed."""

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
class Weather:
    """The rates of faults, per call.

    Attributes:
        duplicates: rate of messages that SQS delivers twice.
        lost_acks: rate of processed messages that SQS does not delete.
        slowness: the longest usual duration of a call, in seconds.
        stalls: rate of calls that take up to 40 s.
        until: virtual seconds after which no faults occur, so that the mesh can finish.
        poison: whether handlers may crash their process.
        outages: (service, from, until): the service refuses all calls in that time.
    """

    name: str = "calm"
    crashes: float = 0.0
    refused: float = 0.0
    answer_lost: float = 0.0
    repeated: float = 0.0
    in_part: float = 0.0
    duplicates: float = 0.0
    lost_acks: float = 0.0
    slowness: float = 0.03
    stalls: float = 0.0
    until: float = 0.0
    poison: bool = False
    outages: tuple[tuple[str, float, float], ...] = ()

    @property
    def is_calm(self) -> bool:
        """Whether no service fails and only handlers crash processes."""
        return self.until == 0.0


# The weight of each kind of weather.
KINDS = {"calm": 2, "poison": 2, "crashes": 4, "errors": 3, "storm": 5, "outages": 2, "repeats": 3}


def random_weather(random: Random, kind: str | None = None) -> Weather:
    """Draw a weather, of the given kind if there is one."""
    kind = kind or random.choices(tuple(KINDS), tuple(KINDS.values()))[0]
    until = random.choice((20.0, 60.0, 200.0))
    bad = random.choice((0.01, 0.03, 0.08))
    match kind:
        case "calm":
            return Weather()
        case "poison":
            return Weather("poison", poison=True)
        case "crashes":
            return Weather(kind, crashes=bad, until=until)
        case "errors":
            return Weather(kind, refused=bad, answer_lost=bad, repeated=bad, in_part=2 * bad, until=until)
        case "outages":
            services = random.sample(("sqs", "s3", "dynamodb", "gateway"), random.randint(1, 2))
            starts = [random.uniform(0, 15) for _ in services]
            outages = tuple(
                (service, start, start + random.choice((3.0, 20.0, 90.0)))
                for service, start in zip(services, starts, strict=True)
            )
            return Weather(kind, refused=bad / 3, crashes=bad / 3, outages=outages, until=until)
        case "repeats":
            return Weather(
                kind, duplicates=random.choice((0.2, 0.5)), lost_acks=0.1, repeated=bad, stalls=bad / 3, until=until
            )
        case _:
            return Weather(
                kind,
                crashes=bad,
                refused=bad,
                answer_lost=bad / 2,
                repeated=bad / 2,
                in_part=bad,
                duplicates=bad * 2,
                lost_acks=bad * 2,
                stalls=bad / 4,
                slowness=random.choice((0.03, 0.5)),
                until=until,
                poison=random.random() < 0.3,
            )


@dataclass
class Faults:
    """Draws the fault and the duration of each call."""

    random: Random
    weather: Weather
    drawn: dict[str, int] = field(default_factory=dict)

    def draw(self, service: str, seconds: float) -> Fault:
        """Draw the fault of a call at this time."""
        weather = self.weather
        if seconds >= weather.until:
            return Fault.NONE
        if any(name == service and start <= seconds < end for name, start, end in weather.outages):
            return self._counted(Fault.REFUSED)
        dice = self.random.random()
        for fault, rate in (
            (Fault.CRASH_BEFORE, weather.crashes / 2),
            (Fault.CRASH_AFTER, weather.crashes / 2),
            (Fault.REFUSED, weather.refused),
            (Fault.ANSWER_LOST, weather.answer_lost),
            (Fault.REPEATED, weather.repeated),
            (Fault.IN_PART, weather.in_part),
        ):
            if dice < rate:
                return self._counted(fault)
            dice -= rate
        return Fault.NONE

    def happens(self, rate: float, seconds: float) -> bool:
        """Draw whether an event of this rate occurs at this time."""
        return seconds < self.weather.until and self.random.random() < rate

    def latency(self, seconds: float) -> float:
        """Draw the duration of a call at this time, in seconds."""
        if self.happens(self.weather.stalls, seconds):
            return self.random.uniform(1.0, 40.0)
        return self.random.uniform(0.001, self.weather.slowness)

    def _counted(self, fault: Fault) -> Fault:
        self.drawn[fault.name] = self.drawn.get(fault.name, 0) + 1
        return fault
