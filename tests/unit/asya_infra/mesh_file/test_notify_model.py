"""The forms of the thresholds of alarms: the messages of other values."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("critical: {mail: a@b.example}", "4: notify.critical.mail: unknown key; did you mean 'email'?"),
        (
            "critical: {https: 'http://pager.example'}",
            "4: notify.critical.https[0]: should be a URL such as https://events.example.com/alarms; got 'http://pager.example'",
        ),
        ("mail: a@b.example", "4: notify.mail: unknown key; did you mean 'email'?"),
        (
            "thresholds: {failure_rate: 0.05}",
            "4: notify.thresholds.failure_rate: should be a share such as 5%, or none for no alarm; got 0.05",
        ),
        (
            "thresholds: {failure_rate: 0%}",
            "4: notify.thresholds.failure_rate: should be more than 0% and at most 100%; got 0%",
        ),
        (
            "thresholds: {failures: 0}",
            "4: notify.thresholds.failures: should be a number of at least 1, or none for no alarm; got 0",
        ),
        (
            "thresholds: {oldest_message: 90s}",
            "4: notify.thresholds.oldest_message: should be whole minutes such as 15m, or none for no alarm; got '90s'",
        ),
        (
            "thresholds: {stuck_runs: 5}",
            "4: notify.thresholds.stuck_runs: should be a duration such as 500ms, 30s, 10m, 2h or 7d; got 5",
        ),
        (
            "thresholds: {errors: 1}",
            "4: notify.thresholds.errors: unknown key; the keys are dead_letters, deadline_missed, "
            "delayed_reports, failure_rate, failures, function_errors, oldest_message, oldest_pause, redelivered, slots_missed, "
            "stopped_sweep, stuck_runs, throttles",
        ),
    ],
)
def test_values(keys: str, problem: str) -> None:
    assert mesh_problems(f"notify: {{{keys}}}") == [problem]
