"""The receivers and the thresholds of alarms: the messages of wrong values."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


def test_alarms_may_have_addresses_webhooks_a_topic_and_thresholds() -> None:
    assert (
        mesh_problems("notify: {email: [ops@example.com, b@example.com], https: 'https://events.example.com/x'}") == []
    )
    assert mesh_problems("notify: {topic: 'arn:aws:sns:eu-central-1:111122223333:alarms'}") == []
    assert (
        mesh_problems(
            "notify: {thresholds: {failure_rate: 0.5%, failures: none, oldest_message: 2h, stuck_runs: none}}"
        )
        == []
    )
    assert (
        mesh_problems(
            "notify: {thresholds: {deadline_missed: 5, dead_letters: none, stopped_sweep: 10m, redelivered: 1}}"
        )
        == []
    )


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("email: [ops]", "4: notify.email[0]: should be an e-mail address such as ops@example.com; got 'ops'"),
        ("email: [a@b.example, a@b.example]", "4: notify.email[1]: 'a@b.example' is there twice; remove one of them"),
        (
            "https: ['http://a.example']",
            "4: notify.https[0]: should be a URL such as https://events.example.com/alarms; got 'http://a.example'",
        ),
        (
            "topic: alarms",
            "4: notify.topic: should be the ARN of a standard SNS topic such as "
            "arn:aws:sns:eu-central-1:111122223333:alarms; got 'alarms'",
        ),
        (
            "email: a@b.example, topic: 'arn:aws:sns:eu-central-1:111122223333:alarms'",
            "4: notify.topic: excludes email and https: subscribe them to the topic, or remove the topic",
        ),
        *(
            (
                f"thresholds: {{oldest_message: {age}}}",
                "4: notify.thresholds.oldest_message: should be more than 15m, because retries and timers wait that long in "
                f"queues, and less than 4d, their retention; got {age}",
            )
            for age in ("15m", "4d")
        ),
        (
            "thresholds: {delayed_reports: 14d}",
            "4: notify.thresholds.delayed_reports: should be less than 14d, the retention of the queues of reports; got 14d",
        ),
        (
            "thresholds: {stopped_sweep: 5m}",
            "4: notify.thresholds.stopped_sweep: should be 10m to 1d, because some sweeps run every 5 minutes; got 5m",
        ),
    ],
)
def test_receivers_and_thresholds(keys: str, problem: str) -> None:
    assert mesh_problems(f"notify: {{{keys}}}") == [problem]
