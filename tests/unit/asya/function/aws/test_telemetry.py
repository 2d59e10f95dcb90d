"""protocol §15: metrics of the namespace `Asya`, for each actor and at most one more bounded dimension, and for the mesh."""

import json
from typing import Any

import pytest

from asya.function.aws.telemetry import Telemetry


def flushed(telemetry: Telemetry, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    telemetry.flush()
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]


@pytest.mark.rule("15.emf", "15.mesh")
def test_counts_and_measurements(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "infer")
    telemetry = Telemetry("shop", "infer")
    telemetry.count("Received", 3)
    telemetry.count("Received")
    telemetry.count("Sent", by=("kind", "sink"))
    for value in (1.0, 2.0):
        telemetry.measure("HandlerDuration", value, "Milliseconds")
    (line,) = flushed(telemetry, capsys)
    plain, by_kind = line["_aws"]["CloudWatchMetrics"]
    assert plain["Namespace"] == by_kind["Namespace"] == "Asya"
    assert plain["Dimensions"] == [["namespace", "actor"], ["namespace"]]
    assert by_kind["Dimensions"] == [["namespace", "actor", "kind"], ["namespace"]]
    assert [each["Name"] for each in (*plain["Metrics"], *by_kind["Metrics"])] == [
        "Received",
        "HandlerDuration",
        "Sent",
    ]
    assert (line["namespace"], line["actor"], line["kind"]) == ("shop", "infer", "sink")
    assert (line["Received"], line["HandlerDuration"], line["Sent"]) == (4, [1, 2], 1)
    assert flushed(telemetry, capsys) == []


@pytest.mark.rule("15.emf")
def test_metrics_that_differ_in_a_member_are_lines_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry("shop", "infer")
    telemetry.count("Processed", by=("outcome", "failed"))
    telemetry.count("Processed", 2, by=("outcome", "succeeded"))
    telemetry.count("Lost", by=("outcome", "succeeded"))
    telemetry.count("Received", actor="other")
    telemetry.count("Received", 0.12345)
    lines = flushed(telemetry, capsys)
    values = [(line["actor"], line.get("outcome"), line.get("Processed"), line.get("Received")) for line in lines]
    assert values == [("infer", "failed", 1, 0.123), ("infer", "succeeded", 2, None), ("other", None, None, 1)]


@pytest.mark.rule("15.emf")
@pytest.mark.filterwarnings("error")
def test_more_values_than_one_object_holds_take_several(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry("shop", "infer")
    for value in range(250):
        telemetry.measure("MessageSize", value, "Bytes")
    lines = flushed(telemetry, capsys)
    assert [len(line["MessageSize"]) for line in lines] == [100, 100, 50]
    assert [value for line in lines for value in line["MessageSize"]] == [float(n) for n in range(250)]
