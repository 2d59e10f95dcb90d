"""Declares the capability: what a mesh gets that names it."""

from asya.api_call import ApiCall
from asya.manifest import ActorFunction, Capability, Command, Function, Queues, Requests, Schedule
from asya.monitoring import Alarm, Metric, Series, Threshold
from asya.needs import OWN, Payloads, lists, reads, sends, writes
from asya.needs import Group as To
from asya.sidecar.needs import SIDECAR
from asya.stores import Prefix
from sample_capability.options import STAMP

_CALLS, _COUNT = "x-stamps", "x-stamp-count"

CAPABILITY = Capability(
    name="sample_capability",
    functions=(
        ActorFunction(
            kind="stamp",
            passes_payloads=True,
            entry_point="sample_capability.functions.stamp",
            timeout=60,
            queues=Queues(),
            needs=(*SIDECAR, sends(To.TARGETS), Payloads(to=(To.TARGETS,)), writes(f"stamps/{OWN}/*")),
        ),
        Function(
            name=_COUNT,
            entry_point="sample_capability.functions.count",
            called_by=Schedule(minutes=1, rule="stamp-count", checks="the stamps", without="the count is old"),
            timeout=60,
            needs=(lists("stamps/*"), writes("stamp-counts.json")),
        ),
        Function(
            name=_CALLS,
            entry_point="sample_capability.functions.calls",
            called_by=Requests(changes=False),
            timeout=20,
            # Without the right to list, S3 answers 403 for a missing object.
            needs=(reads("stamp-counts.json"), lists("stamp-counts.json")),
        ),
    ),
    options=(STAMP,),
    prefixes=(Prefix(name="stamps/", holds="Stamps", kept=30),),
    metrics=(Metric("StampsCounted"),),
    alarms=(
        Alarm(
            name="stamps",
            says="The mesh has many stamps: is one actor in a loop?",
            watched=Series(metric="StampsCounted", statistic="Maximum", of=_COUNT),
            threshold=Threshold(key="stamps", default=1000, text="Stamps of all actors."),
        ),
    ),
    calls=(
        ApiCall(
            method="GET",
            path="/api/v1/stamps",
            handler="sample_capability.calls.StampCalls.counts",
            function=_CALLS,
            summary="The number of stamps by actor",
            group=None,
            answers={200: {"type": "object", "additionalProperties": {"type": "integer"}}},
        ),
    ),
    commands=(Command(name="stamps", entry_point="sample_capability.cli.stamps", text="Print the number of stamps."),),
)
