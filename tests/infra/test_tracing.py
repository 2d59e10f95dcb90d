"""What functions get for the spans of traces, and what they do not get without `telemetry`."""

from pathlib import Path
from typing import Any

import pytest

from asya_infra.build.functions import build_layer
from asya_infra.build.packages import LAMBDA
from tests.infra.conftest import SynthesizedMesh, synthesize

TRACED = {"intake", "score", "crunch", "free", "gather", "approve", "audit"} | {
    *("x-sink", "x-checkpoint", "x-resume", "x-completion", "x-gateway-api"),
}


def environments(mesh: SynthesizedMesh) -> dict[str, dict[str, Any]]:
    return {
        each["FunctionName"].removeprefix("asya-shop-"): each["Environment"]["Variables"]
        for each in mesh.resources("AWS::Lambda::Function")
        if str(each.get("FunctionName", "")).startswith("asya-shop-")
    }


@pytest.mark.rule("15.spans")
def test_functions_that_process_envelopes_know_the_collector(shop: SynthesizedMesh) -> None:
    traced = {name: variables for name, variables in environments(shop).items() if "ASYA_TRACES_ENDPOINT" in variables}
    assert traced.keys() == TRACED | ({"x-pause", "x-fan-in"} & environments(shop).keys())
    for variables in traced.values():
        assert variables["ASYA_TRACES_ENDPOINT"] == "http://localhost:4318/v1/traces"
        assert variables["ASYA_TRACES_SHARE"] == "0.125"
    for function in shop.resources("AWS::Lambda::Function"):
        variables = function.get("Environment", {}).get("Variables", {})
        has_layer = "arn:aws:lambda:eu-central-1:111122223333:layer:collector:3" in function.get("Layers", [])
        assert has_layer == ("ASYA_TRACES_ENDPOINT" in variables)


def test_a_mesh_without_telemetry_has_nothing_of_it(example: SynthesizedMesh) -> None:
    assert "ASYA_TRACES" not in str(example.templates)
    assert "xray" not in str(example.templates)


def xray_mesh(folder: Path, **context: str) -> SynthesizedMesh:
    (folder / "handlers").mkdir(parents=True)
    (folder / "handlers" / "one.py").write_text("def one(payload): return payload\n")
    file = folder / "mesh.yaml"
    file.write_text(
        "namespace: shop\ncode: handlers\nactors: {a: {handler: one.one}}\ntelemetry: {xray: true, sample: 5%}\n"
    )
    return synthesize(folder / "out", mesh=str(file), **context)


def test_x_ray_is_granted_to_the_functions_that_record_spans(tmp_path: Path, no_aws_environment: None) -> None:
    mesh = xray_mesh(tmp_path)
    assert environments(mesh)["a"]["ASYA_TRACES_ENDPOINT"] == "https://xray.<Region>.<URLSuffix>/v1/traces"
    granted = {
        role["RoleName"].removeprefix("asya-shop-").removesuffix("-<Region>")
        for role in mesh.resources("AWS::IAM::Role")
        if "xray:PutTraceSegments" in str(role.get("Policies", ""))
    }
    assert granted == {name for name, each in environments(mesh).items() if "ASYA_TRACES_ENDPOINT" in each}


def test_nothing_on_the_local_cloud_calls_x_ray(tmp_path: Path, no_aws_environment: None) -> None:
    assert "xray" not in str(xray_mesh(tmp_path, layer_target="local").templates)


def test_only_a_mesh_with_telemetry_has_the_sdk_in_its_layer(tmp_path: Path) -> None:
    with_traces = {path.name for path in (build_layer(tmp_path, LAMBDA, traces=True) / "python").iterdir()}
    without = {path.name for path in (build_layer(tmp_path, LAMBDA) / "python").iterdir()}
    assert {"asya", "msgspec", "opentelemetry"} <= with_traces
    assert "opentelemetry" not in without
