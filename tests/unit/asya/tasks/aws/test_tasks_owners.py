"""Reports of envelopes that belong to another owner than their task (`protocol §13.owner.reports`)."""

import pytest

from asya.tasks.aws.tasks import Tasks
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import at, event, hop


@pytest.mark.rule("13.owner.reports")
@pytest.mark.parametrize("is_cached", [True, False])
def test_reports_of_another_owner_change_neither_record_nor_hops(*, is_cached: bool) -> None:
    store, logged = MemoryTaskStore(86400.0), list[str]()
    own = Tasks(store, logged.append)
    own.report([event("t", "registered", owner="AIDAALICE"), *hop("t", 0)], at(9), may_create=True)
    before, load = own.read("t", at(20)), store.load("t", at(20))
    gateway = own if is_cached else Tasks(store, logged.append)
    forged = [
        event("t", status, position, 12.0, owner="AIDAEVE", generation=generation)
        for status in ("received", "completed", "succeeded")
        for position in (0, 1)
        for generation in (0, 9999)
    ]
    for report in forged:
        (result,) = gateway.report([report], at(15), may_create=True)
        assert result.status == 204  # repeating it would not help
    assert Tasks(store, print).read("t", at(20)) == before
    assert store.load("t", at(20)) == load
    assert len(logged) == len(forged)


@pytest.mark.rule("13.owner.reports")
def test_an_envelope_of_the_gateway_names_no_owner_and_reports_on() -> None:
    tasks = Tasks(MemoryTaskStore(86400.0), print)
    tasks.report([event("t", "registered", owner="AIDAALICE"), *hop("t", 0)], at(9), may_create=True)
    tasks.report([event("t", "succeeded", 1, 10.0)], at(15), may_create=True)
    shown = tasks.read("t", at(20))
    assert shown is not None
    assert (shown.status, shown.owner) == ("succeeded", "AIDAALICE")
