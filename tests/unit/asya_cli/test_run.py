"""`asya run show`: the facts of a job run."""

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


def test_each_known_fact_is_a_line() -> None:
    record = RunRecord(
        "clean", 7, "closed", "2026-01-01T00:00:00Z", "00abc", members=3, running_at="2026-01-01T00:01:00Z",
        job_state="FAILED", details="ExitCode: 137", usage=Usage(vcpu_hours=0.5, memory_gb_hours=2, billed=True),
        application_id="00app",
    )  # fmt: skip
    facts = dict(lines(record, RUN))
    assert facts["state"] == "FAILED (in the mesh: closed)"
    assert facts["billed"] == "0.5 vCPU-hours, 2 GB-hours of memory"
    assert facts["log"] == "runs/clean/0000000007/logs/applications/00app/jobs/00abc/SPARK_DRIVER/stderr.gz"
    assert (facts["details"], facts["envelopes"]) == ("ExitCode: 137", "3")


def test_a_run_that_has_not_started() -> None:
    facts = dict(lines(RunRecord("clean", 7, "formed", "2026-01-01T00:00:00Z", members=3), RUN))
    assert facts["job run"] == "not started"
    assert "log" not in facts


@pytest.mark.parametrize(
    ("run_id", "problem"),
    [
        ("00abc", "is not a job run of the mesh 'flights'"),
        (RUN, "there is no job run"),
        ("asya.other.clean.0000000007", "no"),
    ],
)
def test_an_unknown_run_is_an_error(run_id: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=problem):
        read_record(connection({}), run_id)
