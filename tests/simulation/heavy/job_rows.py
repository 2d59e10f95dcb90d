"""Random DataFrame jobs: functions from rows to rows that follow a handler's program (`programs`)."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from asya.testing.services.process import current_process
from tests.simulation.inputs.programs import BIG, ERRORS, CallRecorder, HandlerCall, OutputFrame, Plan, Program

# From the indexes and payloads of all envelopes to the rows of their results, in the same order.
RowsJob = Callable[[list[tuple[int, Any]]], list[dict[str, Any]]]
# The column with the index of a row's envelope.
INDEX = "__asya_index"
# The column with the number of a payload that has no form in JSON; JSON payloads have none.
PROBLEM = "__asya_problem"


def rows_job(program: Program, recorder: CallRecorder) -> RowsJob:
    """A job that follows a program, without Spark."""

    def job(envelopes: list[tuple[int, Any]]) -> list[dict[str, Any]]:
        return [row for index, payload in envelopes for row in _rows(program, recorder, index, payload)]

    return job


def _rows(program: Program, recorder: CallRecorder, index: int, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    process = current_process()
    call = HandlerCall(program.actor, tuple(payload["trail"]), process, process.simulation.scheduler.seconds)
    before = recorder.record_call(call)
    plan = program.plan(call.trail)
    if plan.behavior == "slow" and before >= plan.times:
        plan = Plan("pass")
    process.spend(plan.seconds)
    call.outcome = "raised"
    match plan.behavior:
        case "fail" if before < plan.times:
            yield _row(index, error=f"call number {before + 1} of {program.actor} fails")
            return
        case "exit":
            raise SystemExit(3)
        case "bad" if before == 0:
            raise ERRORS["ValueError"]("the whole job fails")
        case "poison" if before < plan.times:
            process.crash_cause = "/".join(call.trail)
            process.crash("of its job")
    call.outcome = "succeeded"
    for number in range(0 if plan.behavior == "nothing" else plan.frames if plan.behavior == "fan" else 1):
        if plan.behavior == "fan" and plan.error is not None and number == plan.times:
            call.outcome = "raised"
            yield _row(index, error="after some rows")
            return
        trail = (*call.trail, f"{program.actor}.{number}~{before}")
        ahead = plan.next if plan.behavior == "reroute" else None
        recorder.record_frame(call, OutputFrame(trail, ahead))
        output = payload | {"trail": list(trail)}
        output.pop("padding", None)
        if plan.behavior == "big":
            output["padding"] = "p" * BIG
        yield _row(index, payload=output, route_next=ahead)


def _row(
    index: int, *, payload: Any = None, route_next: tuple[str, ...] | None = None, error: str | None = None
) -> dict[str, Any]:
    text = None if payload is None else json.dumps(payload)
    return {INDEX: index, PROBLEM: None, "payload": text, "route_next": route_next, "error": error}
