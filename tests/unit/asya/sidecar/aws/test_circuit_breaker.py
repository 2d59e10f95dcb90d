"""protocol §8: the shared circuit: its cost, concurrent writers, and an unavailable table."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.capabilities.operations.mesh_numbers import circuit_state, open_circuit
from asya.protocol.mesh_table import CircuitBreaker
from asya.sidecar.aws.circuit_breaker import CACHE_SECONDS, OUTAGE_SECONDS, Breaker, read_circuit
from asya.sidecar.circuit_breaker import Permit, Rejection
from asya.testing.dynamo.tables import MemoryDynamo, Table

TABLE = "asya-shop-breaker"
LIMITS = CircuitBreaker(failures=2, window=30, open_for=60)
START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class CountingDynamo(MemoryDynamo):
    """Notes every call; `broken` makes all of them fail, `race` runs once right before a write."""

    broken: Exception | None = None
    race: Any = None

    def __init__(self) -> None:
        super().__init__({TABLE: Table()})
        self.calls: list[str] = []

    def get_item(self, **request: Any) -> dict[str, Any]:
        self._note("get")
        assert request["ConsistentRead"] is True
        return super().get_item(**request)

    def put_item(self, **request: Any) -> dict[str, Any]:
        race, self.race = self.race, None
        if race is not None:
            race()
        self._note("put")
        return super().put_item(**request)

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if self.broken is not None:
            raise self.broken


@pytest.fixture
def dynamo() -> CountingDynamo:
    return CountingDynamo()


def sidecar(dynamo: CountingDynamo, errors: list[Exception] | None = None, **limits: Any) -> Breaker:
    """One process's view of the circuit."""
    return Breaker(
        dynamo,  # type: ignore[arg-type]
        table=TABLE,
        actor="infer",
        limits=CircuitBreaker(**limits) if limits else LIMITS,
        probe_seconds=15,
        on_error=(errors if errors is not None else []).append,
    )


def fails(breaker: Breaker, seconds: float, caller: str = "call") -> None:
    permit = breaker.acquire(caller, at(seconds))
    assert isinstance(permit, Permit)
    breaker.record(permit, "failed", at(seconds), "ConnectionError: no answer")


def test_a_healthy_actor_costs_one_read_a_second_and_no_write(dynamo: CountingDynamo) -> None:
    breaker = sidecar(dynamo)
    for number in range(100):
        permit = breaker.acquire(f"call-{number}", at(number * 0.03))
        assert isinstance(permit, Permit)
        assert breaker.record(permit, "succeeded", at(number * 0.03)) is None
    assert dynamo.calls == ["get"] * 3  # three seconds


@pytest.mark.rule("8.circuit-breaker")
def test_failures_seen_by_several_sidecars_open_it_for_all(dynamo: CountingDynamo) -> None:
    one, other, third = (sidecar(dynamo) for _ in range(3))
    fails(one, 0)
    fails(other, 1)
    assert third.acquire("call", at(2)) == Rejection(
        at(61).timestamp(), at(1).timestamp(), "ConnectionError: no answer"
    )
    assert one.acquire("call", at(0.5)) == Permit("call", 0)  # what it knows is less than a second old
    assert one.acquire("call", at(0 + CACHE_SECONDS)) == third.acquire("call", at(2))


def test_a_writer_with_a_stale_circuit_reads_it_again(dynamo: CountingDynamo) -> None:
    one, other = sidecar(dynamo), sidecar(dynamo)
    permit = one.acquire("call", at(0))
    assert isinstance(permit, Permit)
    dynamo.race = lambda: fails(other, 0.1)
    opened = one.record(permit, "failed", at(0.2))
    assert opened is not None
    assert opened.open_until == at(60.2).timestamp()


def test_one_of_two_concurrent_callers_probes(dynamo: CountingDynamo) -> None:
    one, other = sidecar(dynamo), sidecar(dynamo)
    fails(one, 0)
    fails(one, 0)
    answers = []
    dynamo.race = lambda: answers.append(other.acquire("quicker", at(61)))
    answers.append(one.acquire("slower", at(61)))
    assert answers == [
        Permit("quicker", 1, is_probe=True),
        Rejection(at(76).timestamp(), at(0).timestamp(), "ConnectionError: no answer"),
    ]


def test_a_probe_closes_it_for_all(dynamo: CountingDynamo) -> None:
    one, other = sidecar(dynamo), sidecar(dynamo)
    fails(one, 0)
    fails(one, 0)
    probe = one.acquire("probe", at(61))
    assert isinstance(probe, Permit)
    closed = one.record(probe, "succeeded", at(62))
    assert closed is not None
    assert closed.open_until is None
    assert isinstance(other.acquire("call", at(62)), Permit)
    (item,) = dynamo.tables[TABLE].items.values()
    assert "open_until" not in item
    assert int(item["expires_at"]["N"]) > at(7 * 86400).timestamp()


def test_without_its_table_calls_are_made_and_the_table_is_left_alone_for_a_while(dynamo: CountingDynamo) -> None:
    errors: list[Exception] = []
    breaker = sidecar(dynamo, errors)
    dynamo.broken = EndpointConnectionError(endpoint_url="x")
    for second in range(5):
        fails(breaker, second)
    assert (len(errors), dynamo.calls) == (1, ["get"])
    dynamo.broken = None
    fails(breaker, OUTAGE_SECONDS)
    assert dynamo.calls == ["get", "get", "put"]


def test_without_its_table_an_open_circuit_stays_open_until_then(dynamo: CountingDynamo) -> None:
    breaker = sidecar(dynamo)
    fails(breaker, 0)
    fails(breaker, 0)
    dynamo.broken = ClientError({"Error": {"Code": "InternalServerError", "Message": ""}}, "GetItem")
    assert breaker.acquire("call", at(30)) == Rejection(
        at(60).timestamp(), at(0).timestamp(), "ConnectionError: no answer"
    )
    assert isinstance(breaker.acquire("call", at(60)), Permit)


def test_a_failure_that_cannot_be_recorded_is_only_logged(dynamo: CountingDynamo) -> None:
    errors: list[Exception] = []
    breaker = sidecar(dynamo, errors)
    permit = breaker.acquire("call", at(0))
    assert isinstance(permit, Permit)
    dynamo.broken = ClientError({"Error": {"Code": "ProvisionedThroughputExceededException", "Message": ""}}, "PutItem")
    assert breaker.record(permit, "failed", at(0)) is None
    assert len(errors) == 1


@pytest.mark.slow
def test_many_failures_fit_into_one_item(dynamo: CountingDynamo) -> None:
    breaker = sidecar(dynamo, failures=1000, window=3600, open_for=60)
    for number in range(1000):
        fails(breaker, number / 1000, f"call-{number}")
    assert isinstance(breaker.acquire("call", at(1)), Rejection)


FORMS = st.dictionaries(
    st.sampled_from(["revision", "era", "failures", "open_until", "probe", "probe_until", "opened_at", "error"]),
    st.one_of(
        st.just({"NULL": True}),
        st.builds(lambda text: {"S": text}, st.text(max_size=3)),
        st.builds(lambda number: {"N": str(number)}, st.integers() | st.floats(allow_nan=False, allow_infinity=False)),
        st.just({"N": "1E100"}),
        st.just({"L": [{"S": "x"}]}),
        st.just({"M": {}}),
    ),
)


@pytest.mark.rule("8.circuit-breaker.form")
@settings(max_examples=60)
@given(form=FORMS)
def test_who_looks_at_all_actors_reads_a_circuit_of_any_form(form: dict[str, Any]) -> None:
    """Code of users may write the item of its actor."""
    dynamo = MemoryDynamo({TABLE: Table()})
    dynamo.put_item(TableName=TABLE, Item={"pk": {"S": "charge"}, "sk": {"S": "circuit"}, **form})
    circuit = read_circuit(dynamo, TABLE, "charge")  # type: ignore[arg-type]
    assert circuit_state(circuit, START) in {"open", "half-open", "closed"}
    assert len(msgspec.json.encode(open_circuit(circuit, LIMITS))) < 8192
