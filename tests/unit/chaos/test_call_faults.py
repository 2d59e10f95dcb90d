"""Tests the decisions of the fault proxy."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.call_faults import CallPlan, Decision, decide, error_answer, sends_messages, service_of

HEAD = (
    b"POST / HTTP/1.1\r\nX-Amz-Target: AmazonSQS.%s\r\n"
    b"Authorization: AWS4-HMAC-SHA256 Credential=AK/20251118/us-east-1/%s/aws4_request\r\n\r\n"
)


@pytest.mark.parametrize("service", ["s3", "dynamodb", "sqs", "emr-serverless"])
def test_the_signature_names_the_service(service: str) -> None:
    assert service_of(HEAD % (b"X", service.encode())) == service
    assert service_of(b"GET / HTTP/1.1\r\n\r\n") == ""


@pytest.mark.parametrize(
    ("action", "sends"), [(b"SendMessage", True), (b"SendMessageBatch", True), (b"DeleteMessage", False)]
)
def test_the_target_tells_whether_messages_are_sent(action: bytes, sends: bool) -> None:
    assert sends_messages(HEAD % (action, b"sqs")) is sends


def test_a_plan_without_values_has_no_faults() -> None:
    assert {decide(CallPlan(), random.Random(1), "sqs", sends=True) for _ in range(100)} == {Decision()}


def test_a_failing_service_meets_each_fault_and_the_others_none() -> None:
    plan, numbers = CallPlan(failing={"s3": 0.8}), random.Random(1)
    faults = Counter(decide(plan, numbers, "s3", sends=False).fault for _ in range(1000))
    assert set(faults) == {None, "error", "lost call", "lost answer"}
    assert faults[None] == pytest.approx(200, abs=50)
    assert {decide(plan, numbers, "sqs", sends=True).fault for _ in range(100)} == {None}


def test_other_services_never_fail() -> None:
    plan = CallPlan(error=1.0, failing={"sts": 1.0})
    assert decide(plan, random.Random(1), "sts", sends=False) == Decision()


def test_only_sent_messages_are_duplicated_at_once_or_later() -> None:
    plan, numbers = CallPlan(duplicate=1.0, late=0.5, late_seconds=60), random.Random(1)
    delays = [decide(plan, numbers, "sqs", sends=True).duplicates for _ in range(200)]
    assert all(len(each) == 1 for each in delays)
    late = [delay for (delay,) in delays if delay]
    assert 50 < len(late) < 150
    assert all(1 <= delay <= 60 for delay in late)
    assert decide(plan, numbers, "sqs", sends=False).duplicates == ()


@pytest.mark.parametrize("service", ["s3", "dynamodb", "sqs"])
def test_an_error_answer_is_a_whole_response(service: str) -> None:
    numbers = random.Random(1)
    for _ in range(10):
        head, _, body = error_answer(service, numbers).partition(b"\r\n\r\n")
        assert f"content-length: {len(body)}".encode() in head
        assert head.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
        if service != "s3":
            assert json.loads(body)["__type"]


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = CallPlan(seed=4, failing={"s3": 0.6}, duplicate=0.1)
    plan.write(tmp_path / "plan.json")
    assert CallPlan.read(tmp_path / "plan.json") == plan
    assert CallPlan.read(tmp_path / "missing.json") == CallPlan()
