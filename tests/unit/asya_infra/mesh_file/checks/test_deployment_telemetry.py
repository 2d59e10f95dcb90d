"""`telemetry` in the mesh file: where the spans of traces go."""

import pytest

from asya_infra.mesh_file import MeshFileError
from asya_infra.mesh_file.deployment_model import TelemetrySection
from tests.unit.asya_infra.mesh_file.loading import load

LAYER = "arn:aws:lambda:eu-central-1:111122223333:layer:collector:3"


pytestmark = pytest.mark.usefixtures("folder")


def telemetry(keys: str) -> TelemetrySection:
    """Load a mesh file with these keys of `telemetry` in line 4."""
    return load(f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\ntelemetry: {{{keys}}}\n").mesh.telemetry


@pytest.mark.parametrize(
    ("keys", "endpoint", "share"),
    [
        ("", None, 1.0),
        ("otlp: 'http://collector.internal:4318', sample: 0.5%", "http://collector.internal:4318", 0.005),
        ("otlp: 'https://otlp.example/tenant/7'", "https://otlp.example/tenant/7", 1.0),
        (f"collector: '{LAYER}'", "http://localhost:4318", 1.0),
        (f"collector: ['{LAYER}', '{LAYER}'], otlp: 'http://localhost:9999'", "http://localhost:9999", 1.0),
    ],
)
def test_spans_go_to_a_collector(keys: str, endpoint: str | None, share: float) -> None:
    section = telemetry(keys)
    assert (section.endpoint, section.sample, section.is_on) == (endpoint, share, endpoint is not None)


def test_spans_go_to_x_ray() -> None:
    section = telemetry("xray: true, sample: 10%")
    assert (section.endpoint, section.is_on, section.sample) == (None, True, 0.1)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("otlp: collector", "telemetry.otlp: should be a URL such as http://collector.example:4318; got 'collector'"),
        ("otlp: 'http://c:4318/v1/traces'", "telemetry.otlp: should be the base URL, without /v1/traces"),
        (
            "collector: collector",
            "telemetry.collector[0]: should be the ARN of a layer version such as "
            "arn:aws:lambda:eu-central-1:111122223333:layer:collector:3; got 'collector'",
        ),
        (
            f"collector: ['{LAYER}', '{LAYER}', '{LAYER}', '{LAYER}', '{LAYER}']",
            "telemetry.collector: has 5 layers; 4 at most, because a function has 5 with that of the mesh",
        ),
        (
            "xray: true, otlp: 'http://c:4318'",
            "telemetry.xray: excludes otlp and collector: let the collector export to X-Ray, or remove it",
        ),
        ("sample: 5%", "telemetry.sample: has no effect without otlp, collector or xray; add one of them"),
        ("xray: true, sample: 0.05", "telemetry.sample: should be a share such as 5%; got 0.05"),
        ("xray: true, sample: 0%", "telemetry.sample: should be more than 0% and at most 100%; got 0%"),
    ],
)
def test_a_mistake_is_named(keys: str, problem: str) -> None:
    with pytest.raises(MeshFileError) as error:
        telemetry(keys)
    assert str(error.value) == f"mesh.yaml:4: {problem}"
