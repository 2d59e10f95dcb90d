"""`asya run show`: what a person reads of a job run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asya.protocol.job_runs import Usage
from asya.spark.aws.run_items import RunRecord
from asya_cli.errors import CommandError
from asya_cli.run import lines, read_record

RUN = "asya.flights.clean.0000000007"


def connection(item: dict[str, Any]) -> Any:
    table = SimpleNamespace(get_item=lambda **_: {"Item": item} if item else {})
    return SimpleNamespace(namespace="flights", dynamodb=lambda: table)


def test_all_that_is_known_is_told_line_by_line() -> None:
    record = RunRecord(
        "clean", 7, "closed", "2026-01-01T00:00:00Z", "00abc", members=3, running_at="2026-01-01T00:01:00Z",
        job_state="FAILED", details="ExitCode: 137", usage=Usage(vcpu_hours=0.5, memory_gb_hours=2, billed=True),
        application_id="00app",
    )  # fmt: skip
    told = dict(lines(record, RUN))
    assert told["state"] == "FAILED (here: closed)"
    assert told["billed"] == "0.5 vCPU-hours, 2 GB-hours of memory"
    assert told["log"] == "runs/clean/0000000007/logs/applications/00app/jobs/00abc/SPARK_DRIVER/stderr.gz"
    assert (told["details"], told["envelopes"]) == ("ExitCode: 137", "3")


def test_a_run_that_never_started_says_so() -> None:
    told = dict(lines(RunRecord("clean", 7, "formed", "2026-01-01T00:00:00Z", members=3), RUN))
    assert told["job run"] == "not started"
    assert "log" not in told


@pytest.mark.parametrize(
    ("run_id", "problem"),
    [
        ("00abc", "is no job run of the mesh 'flights'"),
        (RUN, "there is no job run"),
        ("asya.other.clean.0000000007", "no"),
    ],
)
def test_what_is_no_run_is_told(run_id: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=problem):
        read_record(connection({}), run_id)
