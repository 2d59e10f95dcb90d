"""What may go wrong at a call of a service, as the seed decides."""

from dataclasses import dataclass, field
from enum import Enum
from random import Random


class Fault(Enum):
    """How one call goes."""

    NONE = "fine"
    CRASH_BEFORE = "the process dies before it"
    CRASH_AFTER = "the process dies after it"
    REFUSED = "refused"  # throttled, 5xx: no effect
    ANSWER_LOST = "done, but the answer is lost"
    REPEATED = "done, the answer lost, and repeated by the SDK"
    IN_PART = "done in part"


@dataclass(frozen=True)
class Weather:
    """How bad it is. Rates are per call.

    Attributes:
        until: virtual seconds after which nothing goes wrong any more, so that what can still end does.
        outages: (service, from, until): the service refuses everything in that time.
        duplicates: rate of messages that SQS delivers twice.
        lost_acks: rate of handled messages that come again all the same.
        slowness: longest usual time a call takes, in seconds.
        stalls: rate of calls that take very long.
        poison: whether handlers may end their process.
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
        """Whether no service ever fails and no process dies but by its own handler."""
        return self.until == 0.0


# Kinds of weather, and how often each is drawn.
KINDS = {"calm": 2, "poison": 2, "crashes": 4, "errors": 3, "storm": 5, "outages": 2, "repeats": 3}


def random_weather(random: Random, kind: str | None = None) -> Weather:
    """A weather that schedules run in, of any kind or of this one."""
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
    """Draws how each call goes."""

    random: Random
    weather: Weather
    drawn: dict[str, int] = field(default_factory=dict)

    def draw(self, service: str, seconds: float) -> Fault:
        """How a call made now goes."""
        weather = self.weather
        if seconds >= weather.until:
            return Fault.NONE
        if any(name == service and start <= seconds < end for name, start, end in weather.outages):
            return self._noted(Fault.REFUSED)
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
                return self._noted(fault)
            dice -= rate
        return Fault.NONE

    def happens(self, rate: float, seconds: float) -> bool:
        """Whether something of this rate happens now."""
        return seconds < self.weather.until and self.random.random() < rate

    def latency(self, seconds: float) -> float:
        """How long a call made now takes."""
        if self.happens(self.weather.stalls, seconds):
            return self.random.uniform(1.0, 40.0)
        return self.random.uniform(0.001, self.weather.slowness)

    def _noted(self, fault: Fault) -> Fault:
        self.drawn[fault.name] = self.drawn.get(fault.name, 0) + 1
        return fault
