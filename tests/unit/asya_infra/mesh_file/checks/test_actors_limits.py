"""Numbers that contradict each other or exceed the limits of AWS."""

import json

import pytest

from asya.protocol.mesh_table import BODY_LIMIT
from tests.unit.asya_infra.mesh_file.loading import light_actor_problems, mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "reserved: 10",
            "4: actors.a.reserved: is less than concurrency (50), so messages would use up receives; set both to the same",
        ),
        (
            "provisioned: 51",
            "4: actors.a.provisioned: is more than the 50 instances that run at once (concurrency); make it 50 or less",
        ),
        (
            "provisioned: 6, concurrency: 5, reserved: 7",
            "4: actors.a.provisioned: is more than the 5 instances that run at once (concurrency); make it 5 or less",
        ),
        (
            "provisioned: 8, pollers: {}, reserved: 7",
            "4: actors.a.provisioned: is more than the 7 instances that run at once (reserved); make it 7 or less",
        ),
        (
            "provisioned: 31, pollers: {max: 3}",
            "4: actors.a.provisioned: is more than the 30 instances that run at once (pollers.max); make it 30 or less",
        ),
        ("pollers: {min: 30}", "4: actors.a.pollers.min: is more than max (20)"),
        (
            "concurrency: 20, pollers: {}",
            "4: actors.a.concurrency: conflicts with pollers: Lambda takes one of them; remove this key",
        ),
        (
            "batch: {size: 11}, timeout: 1s",
            "4: actors.a.batch: a size of 11 (more than 10) needs a window of 1s or more",
        ),
        ("batch: {window: 301s}", "4: actors.a.batch.window: should be at most 300s for a light actor"),
        ("batch: {window: 500ms}", "4: actors.a.batch.window: should be whole seconds for a light actor"),
        (
            "timeout: 2m",
            "4: actors.a.timeout: 2m × a batch of 10 + 30s margin = 1230s, but the limit of Lambda is 900s; "
            "set batch.size to 7 or less, or shorten the timeout",
        ),
        (
            "timeout: 15m, batch: {size: 1}",
            "4: actors.a.timeout: 15m × a batch of 1 + 30s margin = 930s, but the limit of Lambda is 900s; "
            "make it a heavy actor (spark)",
        ),
    ],
)
def test_numbers_of_a_light_actor(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]


@pytest.mark.parametrize(
    "keys",
    [
        "provisioned: 50",
        "provisioned: 5, concurrency: 5, reserved: 5",
        "provisioned: 7, pollers: {}, reserved: 7",
        "provisioned: 30, pollers: {max: 3}",
    ],
)
def test_as_many_instances_may_be_warm_as_run_at_once(keys: str) -> None:
    assert light_actor_problems(keys) == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            "storage: {retention: {payloads: 10d}}",
            "4: storage.retention.payloads: should be at least 18d: a message with a claim check "
            "may stay 4d in a queue and 14d in a dead-letter queue",
        ),
        ("storage: {retention: {tasks: 36h}}", "4: storage.retention.tasks: should be whole days, such as 30d"),
        (
            "crew: {x-sump: {provisioned: 51, concurrency: 50}}",
            "4: crew.x-sump.provisioned: is more than the 50 instances that run at once (concurrency); make it 50 or less",
        ),
        (
            "gateway: {max_body: 2901k}",
            "4: gateway.max_body: should be from 1k to 2900k: an event of Lambda has 6 MB, and each quote, backslash and line "
            "break of a body counts twice in it; pass a reference instead of larger data",
        ),
        (
            "storage: {retention: {logs: 45d}}",
            "4: storage.retention.logs: should be a number of days that CloudWatch offers: 1, 3, 5, 7, 14, 30, 60, 90, 120, "
            "150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653",
        ),
    ],
)
def test_numbers_of_the_whole_mesh(more: str, problem: str) -> None:
    assert mesh_problems(more) == [problem]


def test_the_event_of_the_largest_body_fits_into_lambda_whatever_its_text() -> None:
    """The body is a string in the event. Of the text that JSON may have, some characters become two and none becomes more."""
    longest = max(len(json.dumps(character)) - 2 for character in map(chr, (*range(32, 127), *map(ord, "\t\n\r"))))
    assert mesh_problems(f"gateway: {{max_body: {BODY_LIMIT // 1024}k}}") == []
    headers_and_context = 2 * 10_240 + 64 * 1024
    assert longest * BODY_LIMIT + headers_and_context <= 6 * 1024 * 1024
