"""Tests the demo: its pipeline on a sample of the flights, and its cleanup."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from asya.protocol.ids import child_id
from asya.protocol.tracing import hop_context
from asya_cli.demo.report import Stopwatch, summary
from asya_cli.demo.run import EVENT, Outcome, Pipeline, with_approval
from asya_cli.errors import CommandError
from asya_cli.sending.send import parse_envelope
from asya_local.cloud import down
from asya_local.processes import cloud_processes, read_records
from asya_local.state_folder import StateFolder
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.heavy_bursts import FULL
from tests.flights_pandas import assert_agrees
from tests.interrupts import restore_interrupts

if TYPE_CHECKING:
    from pathlib import Path

    from asya.protocol.envelope import Envelope
    from tests.doubles.otlp_collector import CollectedSpan, Collector

pytestmark = pytest.mark.cloud

FLIGHTS_PER_MONTH = 1000  # enough for a route of 365 flights


class DemoRun:
    """One run of the demo's pipeline, shared by the tests of its outcome."""

    def __init__(self, cloud: DeployedCloud, folder: Path) -> None:
        self.cloud, self.folder, self.display = cloud, folder, StringIO()
        self.payload = cloud.put_dataset(folder, FLIGHTS_PER_MONTH, "sample")
        self.envelope = event_with(self.payload, "demo-sample")
        console = Console(file=self.display, width=120)
        pipeline = Pipeline(cloud.mesh, console, Stopwatch(), folder)
        self.outcome: Outcome = pipeline.collect(pipeline.run(self.envelope))


def event_with(payload: dict[str, str], envelope_id: str) -> Envelope:
    """The demo's event with another payload."""
    event = {**json.loads(EVENT.read_bytes()), "payload": payload}
    return parse_envelope(json.dumps(event).encode(), "event", envelope_id)


def manifests_of(cloud: DeployedCloud, actor: str) -> list[str]:
    """Reads the manifests of an actor's job runs."""
    s3, bucket = cloud.client("s3"), cloud.mesh.connection.results.bucket
    objects = s3.list_objects_v2(Bucket=bucket, Prefix=f"runs/{actor}/").get("Contents", [])
    keys = [item["Key"] for item in objects if item["Key"].endswith("/manifest.json")]
    return [s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode() for key in keys]


@pytest.fixture(scope="module")
def run(cloud: DeployedCloud, tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    return DemoRun(cloud, tmp_path_factory.mktemp("demo"))


def test_the_pipelines_statistics_agree_with_pandas(run: DemoRun) -> None:
    assert run.outcome.payload["rows_in"] == 12 * FLIGHTS_PER_MONTH
    assert run.outcome.payload["statistics"]["worst_routes"]
    assert_agrees(run.outcome.payload, run.folder)


def test_actors_extend_the_payload_and_replace_nothing(run: DemoRun) -> None:
    assert run.outcome.payload.items() >= run.payload.items()


def test_the_result_equals_the_object_of_x_sink_byte_for_byte(run: DemoRun) -> None:
    body = run.outcome.result.read_bytes()
    assert body == run.cloud.mesh.fetch(run.outcome.uri)
    envelope: dict[str, Any] = json.loads(body)
    assert envelope["id"] == run.envelope.id
    assert envelope["route"] == {
        "prev": ["inspect-dataset", "clean-flights", "split-by-airport", "x-fan-in", "publish-report"],
        "curr": "",
        "next": [],
    }
    assert (envelope["status"]["phase"], envelope["status"]["reason"]) == ("succeeded", "Completed")


def test_the_report_is_one_self_contained_page(run: DemoRun) -> None:
    page = run.outcome.report.read_text()
    assert "<svg" in page
    assert "src=" not in page
    assert "<link" not in page


def test_the_three_airports_shared_one_job_run(run: DemoRun) -> None:
    airports = [row["airport"] for row in run.outcome.payload["statistics"]["by_airport"]]
    assert airports == ["EWR", "JFK", "LGA"]
    position = run.envelope.route.next.index("split-by-airport") + 1
    slices = [child_id(run.envelope.id, 0, position, index) for index in (1, 2, 3)]
    assert [run.cloud.wait_for_end(slice_).status for slice_ in slices] == ["succeeded"] * 3
    manifests = [
        body for body in manifests_of(run.cloud, "delay-statistics") if any(slice_ in body for slice_ in slices)
    ]
    assert len(manifests) == 1
    assert all(slice_ in manifests[0] for slice_ in slices)


def test_the_outcome_names_the_job_runs_with_their_cost(run: DemoRun) -> None:
    assert run.outcome.task_id == run.envelope.id
    assert [(job.actor, job.envelopes) for job in run.outcome.runs] == [("clean-flights", 1), ("delay-statistics", 3)]
    assert all(job.dollars for job in run.outcome.runs)


def test_the_record_has_the_final_status_and_the_address_of_the_result(run: DemoRun) -> None:
    task = run.cloud.mesh.task(run.envelope.id)
    assert task is not None
    assert (task.status, task.progress_percent, task.result_uri) == ("succeeded", 100, run.outcome.uri)


def test_the_display_shows_every_actor_in_order(run: DemoRun) -> None:
    display = run.display.getvalue()
    actors = ("inspect-dataset", "clean-flights", "split-by-airport", "delay-statistics", "x-fan-in", "publish-report")
    for actor in actors:
        assert f"{actor}  " in display
    positions = [display.index(f"{actor}  ") for actor in actors]
    assert positions == sorted(positions)
    assert "processing" in display


def test_the_summary_fits_the_result(run: DemoRun) -> None:
    output = StringIO()
    for part in summary(run.outcome.payload):
        Console(file=output, width=160).print(part)
    assert f"{12 * FLIGHTS_PER_MONTH:,} flights" in output.getvalue()


@dataclass(frozen=True)
class ApprovedRun:
    """A run of the pipeline with the pause actor in its route."""

    envelope_id: str
    outcome: Outcome
    display: str


@pytest.fixture(scope="module")
def approved(cloud: DeployedCloud, tmp_path_factory: pytest.TempPathFactory) -> ApprovedRun:
    folder = tmp_path_factory.mktemp("approval")
    payload = cloud.put_dataset(folder, 1, "approval")
    display = StringIO()
    pipeline = Pipeline(cloud.mesh, Console(file=display, width=120), Stopwatch(), folder)
    envelope = with_approval(event_with(payload, "demo-approval"))
    outcome = pipeline.collect(pipeline.run(envelope))
    return ApprovedRun(envelope.id, outcome, display.getvalue())


def test_with_approval_the_pipeline_pauses_before_the_report(approved: ApprovedRun) -> None:
    assert "Publish the report?" in approved.display
    assert approved.outcome.payload["approved_by"] == "anonymous"  # the default, because there is no terminal
    assert "Approved by anonymous." in approved.outcome.report.read_text()


@pytest.mark.rule("3.trace", "15.spans")
def test_protocol_15_one_trace_leads_through_light_heavy_fan_in_and_pause(
    approved: ApprovedRun, collector: Collector
) -> None:
    trace_id = hop_context(None, approved.envelope_id, "0" * 16).trace_id

    def finished() -> list[CollectedSpan] | None:
        """The spans of the trace; the function of x-sink exports its own after the end of the task."""
        spans = [span for span in collector.spans if span.trace_id == trace_id]
        return spans if any(span.name == "process x-sink" for span in spans) else None

    spans = until(finished, "the spans of x-sink")
    by_id = {span.span_id: span for span in spans}
    edges = {(by_id[span.parent_id].name if span.parent_id else "", span.name) for span in spans}
    assert edges == {
        ("", "process inspect-dataset"),
        ("process inspect-dataset", "receive clean-flights"),
        ("receive clean-flights", "run clean-flights"),
        ("receive clean-flights", "process split-by-airport"),
        ("process split-by-airport", "receive delay-statistics"),
        ("receive delay-statistics", "run delay-statistics"),
        ("receive delay-statistics", "process x-fan-in"),
        ("process split-by-airport", "process x-fan-in"),  # the origin of the slices
        ("process x-fan-in", "pause approve-report"),
        ("pause approve-report", "process x-resume"),
        ("process x-resume", "process publish-report"),
        ("process publish-report", "process x-sink"),
    }
    assert {span.namespace for span in spans} == {"flights"}
    assert not any(span.failed for span in spans)
    assert all(span.started_ns <= span.ended_ns for span in spans)


def test_a_failure_names_its_cause_and_saves_the_failed_envelope(cloud: DeployedCloud, tmp_path: Path) -> None:
    pipeline = Pipeline(cloud.mesh, Console(file=StringIO()), Stopwatch(), tmp_path)
    with pytest.raises(CommandError) as caught:
        pipeline.run(event_with({"flights": "raw/no-such-file.csv"}, "demo-without-data"))
    assert "failed at inspect-dataset: FileNotFoundError" in caught.value.problem
    assert "raw/no-such-file.csv" in caught.value.problem
    assert json.loads((tmp_path / "result.json").read_bytes())["status"]["error"]["traceback"]


@pytest.mark.skipif(not FULL, reason="starts a cloud of its own (make test-full); test_local_cloud.py interrupts one")
def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    folder = StateFolder.at(tmp_path / "state")
    command = [sys.executable, "-m", "asya_cli.main", "demo", "--state", str(folder.root)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=restore_interrupts,  # noqa: PLW1509 - no thread is running here
    )
    try:
        until(lambda: read_records(folder) or None, "the servers to start")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
        assert cloud_processes(folder) == []
        assert not folder.connection.exists()
    finally:
        process.kill()
        down(folder.root)
