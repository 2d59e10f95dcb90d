"""Deployed stacks are updated in place: no change replaces a resource."""

from collections import Counter

import pytest

from tests.infra.conftest import SynthesizedMesh
from tests.infra.recorded_templates import ACCEPT, Templates, differences, digests, hundred, normalized, read


def assert_as_recorded(name: str, current: Templates) -> None:
    lines = differences(read(name), current)
    assert not lines, "\n".join([f"{len(lines)} differences from what is recorded:", *lines, ACCEPT])


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> Templates:
    return hundred(tmp_path_factory.mktemp("hundred"))


def test_the_example_is_deployed_as_recorded(example: SynthesizedMesh) -> None:
    assert_as_recorded("example", normalized(example.folder))


def test_a_mesh_with_a_key_and_a_network_is_deployed_as_recorded(private: SynthesizedMesh) -> None:
    assert_as_recorded("private", digests(normalized(private.folder)))


def test_a_hundred_actors_are_deployed_as_recorded(wide: Templates) -> None:
    assert_as_recorded("hundred", digests(wide))


def test_the_hundred_actors_have_resources_of_every_kind(wide: Templates) -> None:
    kinds = Counter(entry["Type"] for entries in wide.values() for entry in entries.values())
    assert kinds["AWS::Lambda::Function"] > 100
    assert kinds["AWS::SQS::Queue"] > 200
    for kind in ("AWS::EMRServerless::Application", "AWS::DynamoDB::Table", "AWS::Lambda::Version", "Outputs"):
        assert kinds[kind], kind


QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "a", "Tags": [{"Key": "k", "Value": "v"}]}}
TOPIC = {"Type": "AWS::SNS::Topic", "Properties": {}}


def test_an_added_or_missing_logical_id_is_a_difference() -> None:
    assert differences({"s": {"A": QUEUE}}, {"s": {"B": TOPIC}}) == [
        "s: A: AWS::SQS::Queue: missing",
        "s: B: AWS::SNS::Topic: added",
    ]
    assert differences({"s": {"A": QUEUE}}, {}) == ["s: A: AWS::SQS::Queue: missing"]


def test_another_type_is_a_difference() -> None:
    assert differences({"s": {"A": QUEUE}}, {"s": {"A": TOPIC}}) == ["s: A: type: AWS::SQS::Queue → AWS::SNS::Topic"]


def test_other_properties_are_differences_with_their_path() -> None:
    changed = {**QUEUE, "Properties": {"QueueName": "b", "Tags": [{"Key": "k", "Value": "w"}]}, "DependsOn": ["B"]}
    before, after = {"s": {"A": QUEUE}}, {"s": {"A": changed}}
    assert differences(before, after) == [
        's: A: AWS::SQS::Queue: DependsOn: null → ["B"]',
        's: A: AWS::SQS::Queue: Properties.QueueName: "a" → "b"',
        's: A: AWS::SQS::Queue: Properties.Tags[0].Value: "v" → "w"',
    ]
    assert differences(digests(before), digests(after)) == ["s: A: AWS::SQS::Queue: properties"]
    assert differences(digests(before), digests(before)) == []
