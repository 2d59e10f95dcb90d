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
    plain, by_kind = flushed(telemetry, capsys)
    (about,) = plain["_aws"]["CloudWatchMetrics"]
    assert about["Namespace"] == "Asya"
    assert about["Dimensions"] == [["namespace", "actor"], ["namespace"]]
    assert (plain["namespace"], plain["actor"]) == ("shop", "infer")
    assert (plain["Received"], plain["HandlerDuration"]) == ([4.0], [1.0, 2.0])
    assert by_kind["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["namespace", "actor", "kind"], ["namespace"]]
    assert by_kind["Sent"] == [1.0]
    assert flushed(telemetry, capsys) == []


@pytest.mark.rule("15.emf")
@pytest.mark.filterwarnings("error")
def test_more_values_than_one_object_holds_take_several(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry("shop", "infer")
    for value in range(250):
        telemetry.measure("MessageSize", value, "Bytes")
    lines = flushed(telemetry, capsys)
    assert [len(line["MessageSize"]) for line in lines] == [99, 99, 52]
    assert [value for line in lines for value in line["MessageSize"]] == [float(n) for n in range(250)]
