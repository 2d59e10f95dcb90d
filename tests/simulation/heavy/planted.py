"""Planted mistakes of the heavy path, one at a time (see `tests.simulation.mistake`)."""

from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from botocore.exceptions import ClientError
from msgspec.structs import replace as changed

from asya.function.aws import clients
from asya.function.aws.table import Table
from asya.heavy import run_failures, run_formation
from asya.heavy.aws import completion_messages, resident_runs
from asya.heavy.aws.dispatch_requests import DispatchRequest, DispatchRequests
from asya.heavy.aws.drains import Drains
from asya.heavy.aws.emr_serverless import BusyError, EmrServerless
from asya.heavy.aws.pending import Pending
from asya.heavy.aws.resident_runs import Residents
from asya.heavy.aws.run_files import Manifests, RunOutput
from asya.heavy.aws.run_records import RunRecords
from asya.heavy.lambdas import resident_runs as placement
from asya.heavy.lambdas import result_routing
from asya.heavy.lambdas.dispatch import Dispatcher
from asya.heavy.lambdas.reconcile import Reconciler
from asya.heavy.lambdas.resident_runs import Placement
from asya.heavy.lambdas.services import SparkServices
from asya.heavy.run_failures import CHARGED
from asya.protocol.job_runs import Manifest, Member
from asya.testing.dynamo.tables import MemoryDynamo
from tests.simulation.mistake import Mistake, Patch, found_by, substitute, wrap


def _clear_flag_late() -> tuple[Patch, ...]:
    """Clears the flag after the read of the pending envelopes, so envelopes in between get no request."""
    clear = DispatchRequests.clear

    def dispatch_then_clear(real: Any, self: Dispatcher, request: DispatchRequest, spec: Any) -> bool:
        is_clear: bool = real(self, request, spec)
        if is_clear:
            clear(self.services.requests, request.actor)
        return is_clear

    return (
        substitute(DispatchRequests, "clear", lambda *_: None),
        wrap(Dispatcher, "dispatch", dispatch_then_clear),
    )


class _ManifestsAfterRemoval(Manifests):
    """Removes the pending envelopes of a run before it writes the manifest."""

    def __init__(self, services: SparkServices) -> None:
        super().__init__(clients.s3(), bucket=services.settings.bucket)
        self._pending = services.pending

    def create(self, manifest: Manifest) -> str | None:
        """See `Manifests`."""
        self._pending.remove(manifest.actor, manifest.members)
        return super().create(manifest)


def _start_with_new_token(numbers: "count[int]", real: Any, self: Any, request: Any) -> Any:
    return real(self, replace(request, client_token=f"token-{next(numbers)}"))


def _failed_when_running(real: Any, *args: Any) -> Any:
    """The event or the state of a job run; it also replaces the state, because the completion compares the two."""
    observed = real(*args)
    return replace(observed, state="FAILED") if observed is not None and observed.state == "RUNNING" else observed


def _claim_unconditionally(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    for write in request["TransactItems"]:
        if "Put" in write and write["Put"]["Item"]["pk"]["S"].startswith("CLAIM#"):
            del write["Put"]["ConditionExpression"]
    return real(self, **request)


def _as_if_started(real: Any, self: Any, actor: str, number: int) -> Any:
    record = real(self, actor, number)
    return replace(record, state="started") if record is not None and record.state == "formed" else record


def _fail_when_busy(real: Any, self: Any, request: Any) -> Any:
    try:
        return real(self, request)
    except BusyError as busy:
        raise RuntimeError(f"busy: {busy}") from busy


# Whether this process routes the results of a run.
_is_routing: ContextVar[bool] = ContextVar("is routing", default=False)


def _charge_next(real: Any, manifest: Any, failed_run: Any) -> Any:
    decision = real(manifest, failed_run)
    follower = (decision.convicted or 0) + 1
    return (
        replace(decision, convicted=follower)
        if decision.convicted is not None and follower in failed_run.missing
        else decision
    )


def _convict_a_suspect(real: Any, manifest: Any, failed_run: Any) -> Any:
    decision = real(manifest, failed_run)
    return replace(decision, convicted=decision.suspects[0], suspects=()) if decision.suspects else decision


def _return_under_former_key(real: Any, *args: Any) -> dict[int, Member]:
    return {index: changed(member, returned_by=0) for index, member in real(*args).items()}


def _select_sizes(real: Any, *args: Any, size_name: Any, **more: Any) -> Any:
    """Selects envelopes of all sizes."""
    return real(*args, **more)


def _select_all(real: Any, *args: Any, isolation: str, **more: Any) -> Any:
    return real(*args, **more)


def _add_for_all(real: Any, self: Residents, run: Any, *, now: Any) -> None:
    real(self, replace(run, tenant=""), now=now)


# The conditions that have failed since the requeue at work began; None outside of one.
_conflicts: ContextVar[list[object] | None] = ContextVar("conflicts", default=None)


def _requeue_until_a_conflict(real: Any, self: Pending, *args: Any, **more: Any) -> None:
    token = _conflicts.set([])
    try:
        real(self, *args, **more)
    finally:
        _conflicts.reset(token)


def _write_until_a_conflict(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    conflicts = _conflicts.get()
    if conflicts:
        return {}  # the mistake: nobody writes the members beside the one that was claimed before
    try:
        return real(self, **request)
    except ClientError as error:
        if conflicts is not None:
            conflicts.append(error)
        raise


def _yield_to_any(real: Any, self: Table, changes: Any, **_: Any) -> Any:
    return real(self, changes, yields=True)


def _place_unconditionally(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    for write in request["TransactItems"]:
        if write.get("Update", {}).get("UpdateExpression", "").startswith(("SET place_run", "SET placed")):
            del write["Update"]["ConditionExpression"]
            write["Update"].pop("ExpressionAttributeNames", None)
            for name in (":formed", ":before"):
                write["Update"]["ExpressionAttributeValues"].pop(name, None)
    return real(self, **request)


def _write_over(s3: Any, *, bucket: str, key: str, body: bytes) -> bool:
    s3.put_object(Bucket=bucket, Key=key, Body=body)
    return True


def _start_again(real: Any, self: Placement, *args: Any) -> bool:
    """Gives a run to a resident one, and takes it for one that has no job run."""
    real(self, *args)
    return False


_LINGERS: Any = {"features": frozenset({"lingers"})}

MISTAKES = (
    Mistake("clears the flag after the read", _clear_flag_late(), "fault-free"),
    Mistake("sends no dispatch request", substitute(DispatchRequests, "ensure", lambda *_, **__: False), "fault-free"),
    Mistake(
        "removes pending envelopes before the manifest is written",
        substitute(SparkServices, "manifests", property(_ManifestsAfterRemoval)),
    ),
    Mistake(
        "starts runs with random tokens",
        wrap(EmrServerless, "start", partial(_start_with_new_token, count(1))),
        seed=2,
    ),
    Mistake("enqueues each delivery", wrap(MemoryDynamo, "transact_write_items", _claim_unconditionally)),
    Mistake("forms the next run before the latest is started", wrap(RunRecords, "get", _as_if_started), seed=5),
    Mistake("fails when EMR Serverless is busy", wrap(EmrServerless, "start", _fail_when_busy), "fault-free"),
    Mistake("does not reconcile", substitute(Reconciler, "sweep", lambda _: None), seed=1),
    Mistake(
        "treats a running run as ended",
        (
            wrap(completion_messages, "decode_event", _failed_when_running),
            wrap(EmrServerless, "state", _failed_when_running),
        ),
        "fault-free",
    ),
    Mistake("loses envelopes without a result", substitute(RunOutput, "missing", lambda *_: []), "poison", seed=2),
    Mistake(
        "charges all members of a failed run", substitute(run_failures, "decide", lambda *_: CHARGED), "poison", seed=18
    ),
    Mistake("charges the next member", wrap(run_failures, "decide", _charge_next), "poison", seed=73),
    Mistake(
        "charges only one of the envelopes at work",
        wrap(run_failures, "decide", _convict_a_suspect),
        "poison",
        seed=59,
    ),
    Mistake(
        "requeues under the former key",
        wrap(result_routing, "returned_members", _return_under_former_key),
        "poison",
        seed=17,
    ),
    Mistake(
        "forms runs of drained actors",
        substitute(Drains, "get", lambda *_: None),
        features=frozenset({"drains"}),
        seed=15,
    ),
    Mistake("ends no drain", substitute(Drains, "end", lambda *_: None), features=frozenset({"drains"})),
    Mistake(
        "places a run twice", wrap(MemoryDynamo, "transact_write_items", _place_unconditionally), seed=49, **_LINGERS
    ),
    Mistake("writes over a closed batch", substitute(resident_runs, "put_if_absent", _write_over), seed=5, **_LINGERS),
    Mistake(
        "starts a job run for a batch",
        (wrap(Placement, "start", _start_again), substitute(Placement, "place_alone", lambda *_: True)),
        seed=0,
        **_LINGERS,
    ),
    Mistake("remembers resident runs that have ended", substitute(Residents, "remove", lambda *_: None), **_LINGERS),
    Mistake("lets envelopes of all sizes share a run", wrap(run_formation, "select", _select_sizes), seed=29),
    Mistake(
        "takes every death for one of memory",
        substitute(result_routing, "ran_out_of_memory", lambda _: True),
        "poison",
        seed=6,
    ),
    Mistake("lets all envelopes share a run", wrap(run_formation, "select", _select_all), seed=2),
    Mistake(
        "gives a resident run the batches of all tenants",
        (wrap(Residents, "add", _add_for_all), substitute(placement, "driver_tenant", lambda *_: "")),
        seed=22,
        **_LINGERS,
    ),
    found_by(
        "requeues no member beside one that was requeued before",
        (
            wrap(Pending, "requeue", _requeue_until_a_conflict),
            wrap(MemoryDynamo, "transact_write_items", _write_until_a_conflict),
        ),
        "unit/asya/heavy/aws/test_pending.py::test_10_members_beside_a_requeued_one_are_requeued",
    ),
    found_by(
        "takes a conflict of a requeue for a repetition",
        wrap(Table, "transact", _yield_to_any),
        "unit/asya/heavy/aws/test_pending.py::test_10_a_requeue_that_meets_another_write_fails",
    ),
    Mistake("requeues no members", substitute(Pending, "requeue", lambda *_, **__: None), "poison", seed=17),
)
