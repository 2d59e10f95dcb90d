"""protocol §14: a mesh file with legacy forms in the templates."""

from typing import Any

import pytest

from tests.infra.conftest import HERE, SynthesizedMesh, synthesize
from tests.infra.test_functions import feed


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    return synthesize(tmp_path_factory.mktemp("legacy"), mesh=str(HERE / "mesh" / "legacy.yaml"), layer_target="local")


def variables(mesh: SynthesizedMesh, actor: str) -> dict[str, Any]:
    return dict(mesh.function(actor, "legacy")["Environment"]["Variables"])


@pytest.mark.rule("14.environment.end-actor")
def test_an_end_actor_has_its_legacy_variables(legacy: SynthesizedMesh) -> None:
    environment = variables(legacy, "archive")
    assert {
        name: environment[name]
        for name in environment
        if name.startswith(("ASYA_HANDLER", "ASYA_IS", "ASYA_EN", "ASYA_S3"))
    } == {
        "ASYA_HANDLER": "orders.score",
        "ASYA_HANDLER_MODE": "envelope",
        "ASYA_ENABLE_VALIDATION": "false",
        "ASYA_IS_END_ACTOR": "true",
        "ASYA_S3_BUCKET": "own-results",
    }
    assert legacy.function("archive", "legacy")["MemorySize"] == 354


def test_happy_end_is_x_sink(legacy: SynthesizedMesh) -> None:
    environment = variables(legacy, "x-sink")
    assert environment["ASYA_RESULTS_URI"] == "s3://my-results-bucket/"
    # The address is that of the results; payloads behind claim checks are in the bucket of the mesh.
    assert "AWS_ENDPOINT_URL_S3" not in environment
    assert legacy.function("x-sink", "legacy")["MemorySize"] == 1024
    feeding = feed(legacy, "x-sink", "legacy")
    assert (feeding["BatchSize"], feeding["ScalingConfig"]) == (5, {"MaximumConcurrency": 10})
    assert feeding["FunctionName"].endswith(":warm")


@pytest.mark.rule("14.operator-settings")
def test_a_disabled_crew_actor_has_a_queue_that_no_function_reads(legacy: SynthesizedMesh) -> None:
    sources = [each["EventSourceArn"] for each in legacy.resources("AWS::Lambda::EventSourceMapping")]
    assert any(arn.endswith("asya-legacy-x-sink") for arn in sources)
    assert not any(arn.endswith("asya-legacy-x-sump") for arn in sources)
    assert legacy.one("AWS::SQS::Queue", QueueName="asya-legacy-x-sump")
