"""Mistake mistakes of the heavy path, one at a time (see `tests.simulation.planted`)."""

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
from tests.simulation.mistake import Mistake, substitute, wrap


@contextmanager
def _clear_flag_late() -> Iterator[None]:
    """Clears the flag after the read of the pending envelopes, so envelopes in between get no request."""
    clear, dispatch = DispatchRequests.clear, Dispatcher.dispatch

    def dispatch_then_clear(self: Any, request: Any, spec: Any) -> bool:
        is_clear = dispatch(self, request, spec)
        if is_clear:
            clear(self.services.requests, request.actor)
        return is_clear

    with (
        mock.patch.object(DispatchRequests, "clear", lambda *_: None),
        mock.patch.object(Dispatcher, "dispatch", dispatch_then_clear),
    ):
        yield


def _remove_before_manifest(real: Any, self: Any, actor: str, spec: Any, members: Any) -> Any:
    members_to_run = real(self, actor, spec, members)
    self.services.pending.remove(actor, members_to_run)
    return members_to_run


def _start_with_new_token(numbers: "count[int]", real: Any, self: Any, request: Any) -> Any:
    return real(self, replace(request, client_token=f"token-{next(numbers)}"))


def _failed_when_running(real: Any, body: bytes) -> Any:
    event = real(body)
    return replace(event, state="FAILED") if event is not None and event.state == "RUNNING" else event


def _new_claim(numbers: "count[int]", real: Any, member: Any) -> Any:
    return real(changed(member, attempt=member.attempt + 1000 * next(numbers)))


def _as_if_started(real: Any, self: Any, actor: str, number: int) -> Any:
    record = real(self, actor, number)
    return replace(record, state="started") if record is not None and record.state == "formed" else record


def _fail_when_busy(real: Any, self: Any, request: Any) -> Any:
    try:
        return real(self, request)
    except BusyError as busy:
        raise RuntimeError(f"busy: {busy}") from busy


def _record_before_send(real: Any, self: Any) -> None:
    self._services.records.advance(self._manifest.actor, self._manifest.number, self._saved_cursor, self._cursor)
    self._saved_cursor = self._cursor
    real(self)


def _charge_next(real: Any, manifest: Any, failed_run: Any) -> Any:
    decision = real(manifest, failed_run)
    follower = (decision.at_work or 0) + 1
    return (
        replace(decision, at_work=follower)
        if decision.at_work is not None and follower in failed_run.lost
        else decision
    )


def _requeue_under_former_key(real: Any, manifest: Any, index: int, half: Any) -> Any:
    return changed(real(manifest, index, half), returned_by=0)


def _with_counter(wrong: Callable[..., Any], owner: Any, name: str) -> Callable[[], AbstractContextManager[Any]]:
    return wrap(owner, name, partial(wrong, count(1)))


MISTAKES = (
    Mistake("clears the flag after the read", _clear_flag_late, "calm"),
    Mistake("sends no dispatch request", substitute(Enqueuer, "_request", lambda *_: None), "calm"),
    Mistake(
        "removes pending envelopes before the manifest is written",
        wrap(Dispatcher, "_runnable", _remove_before_manifest),
    ),
    Mistake("starts runs with random tokens", _with_counter(_start_with_new_token, EmrServerless, "start"), seed=14),
    Mistake("enqueues each delivery", _with_counter(_new_claim, pending, "_claim_key")),
    Mistake("forms the next run before the latest is started", wrap(RunRecords, "get", _as_if_started)),
    Mistake("fails when EMR Serverless is busy", wrap(EmrServerless, "start", _fail_when_busy), "calm"),
    Mistake("does not reconcile", substitute(Reconciler, "sweep", lambda _: None), seed=17),
    Mistake(
        "treats a running run as ended",
        wrap(completion_messages, "decode_event", _failed_when_running),
        "calm",
    ),
    Mistake("loses envelopes without a result", substitute(ResultRouter, "_route_missing", lambda *_: None), "poison"),
    Mistake(
        "records the cursor before the deliveries", wrap(ResultRouter, "_checkpoint", _record_before_send), seed=42
    ),
    Mistake("charges all members of a failed run", substitute(run_failures, "decide", lambda *_: CHARGED), "poison"),
    Mistake("charges the next member", wrap(run_failures, "decide", _charge_next), "poison", seed=21),
    Mistake("requeues under the former key", wrap(run_failures, "_returned", _requeue_under_former_key), "poison"),
    Mistake("requeues no members", substitute(Pending, "requeue", lambda *_, **__: None), "poison"),
)
