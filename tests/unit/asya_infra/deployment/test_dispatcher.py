"""Pausing the dispatcher while the Spark application changes."""

import pytest

from asya_infra.deployment.dispatcher import Dispatcher
from tests.unit.asya_infra.deployment.stubs import StubbedSession

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/asya-shop-x-dispatch"
UUID = "14e0db71-5d35-4eb5-b481-8945cf9d10c2"
ARN = "arn:aws:sqs:us-east-1:123456789012:asya-shop-x-dispatch"
MAPPING = f"arn:aws:lambda:us-east-1:123456789012:event-source-mapping:{UUID}"
MARK = "asya:paused-by-deployment"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:asya-shop-x-dispatch"


@pytest.fixture
def session() -> StubbedSession:
    return StubbedSession()


def dispatcher(session: StubbedSession) -> Dispatcher:
    return Dispatcher(session, "shop", lambda _: None)


def mapping(session: StubbedSession, state: str) -> None:
    session.answer("sqs", "get_queue_url", {"QueueUrl": URL}, QueueName="asya-shop-x-dispatch")
    session.answer(
        "sqs", "get_queue_attributes", {"Attributes": {"QueueArn": ARN}}, QueueUrl=URL, AttributeNames=["QueueArn"]
    )
    found = {"UUID": UUID, "EventSourceMappingArn": MAPPING, "State": state, "FunctionArn": FUNCTION}
    session.answer("lambda", "list_event_source_mappings", {"EventSourceMappings": [found]}, EventSourceArn=ARN)


def tags(session: StubbedSession, *keys: str) -> None:
    session.answer("lambda", "list_tags", {"Tags": dict.fromkeys(keys, "true")}, Resource=MAPPING)


def mark(session: StubbedSession) -> None:
    session.answer("lambda", "tag_resource", {}, Resource=MAPPING, Tags={MARK: "true"})


def unmark(session: StubbedSession) -> None:
    session.answer("lambda", "untag_resource", {}, Resource=MAPPING, TagKeys=[MARK])


def enable(session: StubbedSession, *, enabled: bool) -> None:
    session.answer("lambda", "update_event_source_mapping", {}, UUID=UUID, Enabled=enabled)


def timeout(session: StubbedSession) -> None:
    session.answer("lambda", "get_function_configuration", {"Timeout": 120}, FunctionName=FUNCTION)


def test_it_is_disabled_and_awaited(session: StubbedSession) -> None:
    mapping(session, "Enabled")
    mark(session)
    enable(session, enabled=False)
    mapping(session, "Disabling")
    mapping(session, "Disabled")
    timeout(session)
    slept: list[float] = []
    Dispatcher(session, "shop", slept.append).pause()
    session.check()
    assert slept == [5, 5, 120]  # at last for a call that began before, and may start a run until its timeout


def test_a_second_pause_changes_nothing(session: StubbedSession) -> None:
    mapping(session, "Disabled")
    timeout(session)
    dispatcher(session).pause()
    session.check()


def test_a_mapping_that_lambda_is_changing_is_disabled_later(session: StubbedSession) -> None:
    mapping(session, "Updating")
    mapping(session, "Enabled")
    mark(session)
    session.refuse("lambda", "update_event_source_mapping", "ResourceInUseException")
    mapping(session, "Enabled")
    enable(session, enabled=False)
    mapping(session, "Disabled")
    timeout(session)
    dispatcher(session).pause()
    session.check()


def test_it_that_does_not_stop(session: StubbedSession) -> None:
    for _ in range(60):
        mapping(session, "Disabling")
    with pytest.raises(TimeoutError, match="does not stop"):
        dispatcher(session).pause()


def test_what_a_deployment_disabled_is_enabled_again(session: StubbedSession) -> None:
    paused = dispatcher(session)
    mapping(session, "Enabled")
    mark(session)
    enable(session, enabled=False)
    mapping(session, "Disabled")
    timeout(session)
    paused.pause()
    # It needs no tag for that: CloudFormation may have removed it.
    mapping(session, "Disabled")
    enable(session, enabled=True)
    unmark(session)
    assert paused.resume() == "resumed"

    mapping(session, "Enabled")
    tags(session)
    assert paused.resume() == "running"
    session.check()


def test_what_a_killed_deployment_disabled_is_enabled_again(session: StubbedSession) -> None:
    mapping(session, "Disabled")
    tags(session, MARK, "team")
    enable(session, enabled=True)
    unmark(session)
    assert dispatcher(session).resume() == "resumed"
    session.check()


def test_the_mark_of_a_deployment_that_was_killed_before_it_disabled_is_removed(session: StubbedSession) -> None:
    mapping(session, "Enabled")
    tags(session, MARK)
    unmark(session)
    assert dispatcher(session).resume() == "running"
    session.check()


@pytest.mark.parametrize("state", ["Disabled", "Disabling"])
def test_what_an_operator_disabled_stays_disabled(session: StubbedSession, state: str) -> None:
    paused = dispatcher(session)
    mapping(session, "Disabled")
    timeout(session)
    paused.pause()
    mapping(session, state)
    tags(session, "team")
    assert paused.resume() == "disabled"
    session.check()


@pytest.mark.parametrize("state", ["Disabling", "Updating"])
def test_it_is_enabled_when_its_last_change_has_ended(session: StubbedSession, state: str) -> None:
    mapping(session, state)
    tags(session, MARK)
    mapping(session, "Disabled")
    session.refuse("lambda", "update_event_source_mapping", "ResourceInUseException")
    mapping(session, "Disabled")
    enable(session, enabled=True)
    unmark(session)
    assert dispatcher(session).resume() == "resumed"
    session.check()


def test_it_that_cannot_be_enabled(session: StubbedSession) -> None:
    mapping(session, "Disabling")
    tags(session, MARK)
    for _ in range(59):
        mapping(session, "Disabling")
    with pytest.raises(TimeoutError, match="stays disabled, so no job run starts"):
        dispatcher(session).resume()


def test_a_mesh_without_a_dispatcher(session: StubbedSession) -> None:
    for _ in range(3):
        session.refuse("sqs", "get_queue_url", "QueueDoesNotExist")
    dispatcher(session).pause()
    assert dispatcher(session).resume() == "running"


def test_a_mapping_that_is_being_deleted_with_its_mesh_is_left_alone(session: StubbedSession) -> None:
    mapping(session, "Deleting")
    assert dispatcher(session).resume() == "running"
    session.check()
