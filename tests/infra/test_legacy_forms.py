"""protocol §14: a mesh file of the older generations, deployed."""

from typing import Any

import pytest

from tests.infra.conftest import HERE, Synthesised, synthesise
from tests.infra.test_functions import feed


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> Synthesised:
    return synthesise(tmp_path_factory.mktemp("older"), mesh=str(HERE / "mesh" / "older.yaml"), layer_target="host")


def variables(mesh: Synthesised, actor: str) -> dict[str, Any]:
    return dict(mesh.function(actor, "older")["Environment"]["Variables"])


@pytest.mark.rule("14.environment.end-actor")
def test_an_end_actor_finds_the_variables_it_was_written_for(older: Synthesised) -> None:
    found = variables(older, "archive")
    assert {
        name: found[name] for name in found if name.startswith(("ASYA_HANDLER", "ASYA_IS", "ASYA_EN", "ASYA_S3"))
    } == {
        "ASYA_HANDLER": "orders.score",
        "ASYA_HANDLER_MODE": "envelope",
        "ASYA_ENABLE_VALIDATION": "false",
        "ASYA_IS_END_ACTOR": "true",
        "ASYA_S3_BUCKET": "own-results",
    }
    assert older.function("archive", "older")["MemorySize"] == 354


def test_happy_end_is_x_sink(older: Synthesised) -> None:
    found = variables(older, "x-sink")
    assert found["ASYA_RESULTS_URI"] == "s3://my-results-bucket/"
    assert found["AWS_ENDPOINT_URL_S3"] == "https://s3.storage.example"
    assert older.function("x-sink", "older")["MemorySize"] == 1024
    feeding = feed(older, "x-sink", "older")
    assert (feeding["BatchSize"], feeding["ScalingConfig"]) == (5, {"MaximumConcurrency": 10})
    assert feeding["FunctionName"].endswith(":warm")


@pytest.mark.rule("14.operator-settings")
def test_a_crew_actor_that_is_not_enabled_has_a_queue_but_no_function(older: Synthesised) -> None:
    functions = {function["FunctionName"] for function in older.resources("AWS::Lambda::Function")}
    assert "asya-older-x-sump" not in functions
    assert older.one("AWS::SQS::Queue", QueueName="asya-older-x-sump")
