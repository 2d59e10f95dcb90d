"""Planted mistakes of the heavy path, one at a time (see `tests.simulation.planted`)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any
from unittest import mock

from msgspec.structs import replace as changed

from asya.spark import run_failures
from asya.spark.aws import completion_messages, pending
from asya.spark.aws.dispatch_requests import DispatchRequests
from asya.spark.aws.emr_serverless import BusyError, EmrServerless
from asya.spark.aws.pending import Pending
from asya.spark.aws.run_records import RunRecords
from asya.spark.lambdas.dispatch import Dispatcher
from asya.spark.lambdas.enqueue import Enqueuer
from asya.spark.lambdas.reconcile import Reconciler
from asya.spark.lambdas.result_routing import ResultRouter
from asya.spark.run_failures import CHARGED
from tests.simulation.planting import Planted, around, instead


@contextmanager
def _flag_down_late() -> Iterator[None]:
    """Clears the flag after the read of the pending envelopes, so envelopes in between get no request."""
    clear, dispatch = DispatchRequests.clear, Dispatcher.dispatch

    def dispatch_first(self: Any, request: Any, spec: Any) -> bool:
        flag_down = dispatch(self, request, spec)
        if flag_down:
            clear(self.services.requests, request.actor)
        return flag_down

    with (
        mock.patch.object(DispatchRequests, "clear", lambda *_: None),
        mock.patch.object(Dispatcher, "dispatch", dispatch_first),
    ):
        yield


def _removed_before_the_manifest(real: Any, self: Any, actor: str, spec: Any, members: Any) -> Any:
    fit = real(self, actor, spec, members)
    self.services.pending.remove(actor, fit)
    return fit


def _started_anew(numbers: "count[int]", real: Any, self: Any, request: Any) -> Any:
    return real(self, replace(request, client_token=f"token-{next(numbers)}"))


def _over_when_it_runs(real: Any, body: bytes) -> Any:
    event = real(body)
    return replace(event, state="FAILED") if event is not None and event.state == "RUNNING" else event


def _claim_of_its_own(numbers: "count[int]", real: Any, member: Any) -> Any:
    return real(changed(member, attempt=member.attempt + 1000 * next(numbers)))


def _as_if_started(real: Any, self: Any, actor: str, number: int) -> Any:
    record = real(self, actor, number)
    return replace(record, state="started") if record is not None and record.state == "formed" else record


def _failing_when_busy(real: Any, self: Any, request: Any) -> Any:
    try:
        return real(self, request)
    except BusyError as busy:
        raise RuntimeError(f"busy: {busy}") from busy


def _noted_before_it_left(real: Any, self: Any) -> None:
    self._services.records.advance(self._manifest.actor, self._manifest.number, self._saved_cursor, self._cursor)
    self._saved_cursor = self._cursor
    real(self)


def _the_next_in_line(real: Any, manifest: Any, failed_run: Any) -> Any:
    decision = real(manifest, failed_run)
    follower = (decision.at_work or 0) + 1
    return (
        replace(decision, at_work=follower)
        if decision.at_work is not None and follower in failed_run.lost
        else decision
    )


def _back_under_its_old_name(real: Any, manifest: Any, index: int, half: Any) -> Any:
    return changed(real(manifest, index, half), returned_by=0)


def _with_a_number(wrong: Callable[..., Any], owner: Any, name: str) -> Callable[[], AbstractContextManager[Any]]:
    return around(owner, name, partial(wrong, count(1)))


PLANTED = (
    Planted("takes the flag down after the reading", _flag_down_late, "calm"),
    Planted("does not ask the dispatcher", instead(Enqueuer, "_request", lambda *_: None), "calm"),
    Planted(
        "forgets the pending before the manifest is written",
        around(Dispatcher, "_runnable", _removed_before_the_manifest),
    ),
    Planted("starts runs without their token", _with_a_number(_started_anew, EmrServerless, "start"), seed=14),
    Planted("admits each delivery", _with_a_number(_claim_of_its_own, pending, "_claim_key")),
    Planted("forms the next run before the latest is started", around(RunRecords, "get", _as_if_started)),
    Planted("fails when EMR Serverless is busy", around(EmrServerless, "start", _failing_when_busy), "calm"),
    Planted("does not reconcile", instead(Reconciler, "sweep", lambda _: None), seed=17),
    Planted(
        "takes a run that began for one that is over",
        around(completion_messages, "decode_event", _over_when_it_runs),
        "calm",
    ),
    Planted("loses envelopes without a result", instead(ResultRouter, "_route_missing", lambda *_: None), "poison"),
    Planted("notes what has left before it has", around(ResultRouter, "_checkpoint", _noted_before_it_left), seed=42),
    Planted("charges everybody when a run dies", instead(run_failures, "decide", lambda *_: CHARGED), "poison"),
    Planted("charges the next in line", around(run_failures, "decide", _the_next_in_line), "poison", seed=21),
    Planted("gives back under the old name", around(run_failures, "_returned", _back_under_its_old_name), "poison"),
    Planted("gives nothing back", instead(Pending, "requeue", lambda *_, **__: None), "poison"),
)
