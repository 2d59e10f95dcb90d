"""Draws the kinds and the rates of faults of a schedule from its seed."""

from random import Random

from asya.testing.services.faults import FaultProfile

# The weight of each kind of faults.
KINDS = {"fault-free": 2, "poison": 2, "crashes": 4, "errors": 3, "mixed": 5, "outages": 2, "repeats": 3, "reports": 2}


OUTAGE_SECONDS = (60.0, 300.0, 1800.0)
SERVICES = ("sqs", "s3", "dynamodb")


def random_outage(random: Random) -> tuple[str, float, float]:
    """Draw a service that is off, and from when to when."""
    start = random.uniform(0.0, 30.0)
    return random.choice(SERVICES), start, start + random.choice(OUTAGE_SECONDS)


def random_profile(random: Random, kind: str | None = None) -> FaultProfile:
    """Draw a profile, of the given kind if there is one."""
    kind = kind or random.choices(tuple(KINDS), tuple(KINDS.values()))[0]
    until = random.choice((20.0, 60.0, 200.0))
    rate = random.choice((0.01, 0.03, 0.08))
    match kind:
        case "fault-free":
            return FaultProfile()
        case "poison":
            return FaultProfile("poison", poison=True)
        case "crashes":
            return FaultProfile(kind, crashes=rate, until=until)
        case "errors":
            return FaultProfile(
                kind, refusals=rate, lost_responses=rate, repeats=rate, partial_calls=2 * rate, until=until
            )
        case "outages":
            services = random.sample(("sqs", "s3", "dynamodb"), random.randint(1, 2))
            starts = [random.uniform(0, 15) for _ in services]
            outages = tuple(
                (service, start, start + random.choice((3.0, 20.0, 90.0)))
                for service, start in zip(services, starts, strict=True)
            )
            return FaultProfile(kind, refusals=rate / 3, crashes=rate / 3, outages=outages, until=until)
        case "reports":
            start = random.uniform(0, 10)
            return FaultProfile(
                kind,
                refusals=rate / 3,
                crashes=rate / 3,
                duplicates=rate,
                until=until,
                report_outage=(start, start + 3600.0),
            )
        case "repeats":
            return FaultProfile(
                kind, duplicates=random.choice((0.2, 0.5)), lost_acks=0.1, repeats=rate, stalls=rate / 3, until=until
            )
        case _:
            return FaultProfile(
                kind,
                crashes=rate,
                refusals=rate,
                lost_responses=rate / 2,
                repeats=rate / 2,
                partial_calls=rate,
                duplicates=rate * 2,
                lost_acks=rate * 2,
                stalls=rate / 4,
                slowness=random.choice((0.03, 0.5)),
                until=until,
                poison=random.random() < 0.3,
            )
