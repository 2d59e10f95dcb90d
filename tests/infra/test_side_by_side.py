"""Several meshes, and several stages of one, in one account: their names, queues, tables, roles and policies (`protocol §4`)."""

from pathlib import Path
from typing import Any

import pytest

from tests.infra.conftest import SynthesizedMesh, synthesize

NAMES = {
    "AWS::ApiGatewayV2::Api": "Name",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::EMRServerless::Application": "Name",
    "AWS::Events::Rule": "Name",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::SQS::Queue": "QueueName",
}
"""The types of resources with a name of the mesh, which CloudFormation cannot create twice."""


def names_of(mesh: SynthesizedMesh) -> set[tuple[str, str]]:
    """Every resource name of a mesh, with its type."""
    return {(kind, resource[key]) for kind, key in NAMES.items() for resource in mesh.resources(kind)}


def stacks_of(mesh: SynthesizedMesh) -> set[str]:
    """The names of its stacks."""
    return {path.name.partition(".")[0] for path in mesh.folder.glob("*.template.json")}


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    """A mesh `plain` with an actor `test-score`, whose queue name equals that of `score` in the stage `test`."""
    folder = tmp_path_factory.mktemp("neighbour")
    (folder / "handlers").mkdir()
    (folder / "handlers" / "orders.py").write_text((Path(__file__).parent / "mesh/handlers/orders.py").read_text())
    mesh = folder / "mesh.yaml"
    mesh.write_text("namespace: plain\ncode: handlers\nactors: {test-score: {handler: orders.score}}\n")
    return synthesize(folder / "out", mesh=str(mesh), layer_target="local")


@pytest.mark.rule("4.collisions.across-meshes")
def test_meshes_and_stages_share_an_account(shop: Any, plain: Any, example: Any) -> None:
    meshes = (shop, plain, example)
    for of in (names_of, stacks_of):
        wanted = [of(mesh) for mesh in meshes]
        assert all(wanted)
        assert sum(map(len, wanted)) == len(set().union(*wanted))


def test_every_resource_name_contains_the_namespace(shop: Any, plain: Any) -> None:
    for mesh, namespace in ((shop, "shop"), (plain, "plain-test")):
        assert all(f"asya-{namespace}" in name for _, name in names_of(mesh))


@pytest.mark.rule("4.collisions.across-meshes")
def test_a_queue_name_of_another_mesh_is_refused(plain: Any, neighbour: SynthesizedMesh) -> None:
    """No stack of one replaces one of the other, and CloudFormation creates nothing twice under one name."""
    assert not stacks_of(plain) & stacks_of(neighbour)
    assert names_of(plain) & names_of(neighbour) == {
        ("AWS::SQS::Queue", "asya-plain-test-score"),
        ("AWS::SQS::Queue", "asya-plain-test-score-dlq"),
        ("AWS::Lambda::Function", "asya-plain-test-score"),
        ("AWS::Logs::LogGroup", "/aws/lambda/asya-plain-test-score"),
        ("AWS::IAM::Role", "asya-plain-test-score-<Region>"),
    }
