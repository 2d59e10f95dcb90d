"""Tests that `asya doctor` reads the demand of real templates."""

from asya_infra.assembly import read_assembly
from asya_infra.preflight.demand import NamedResource, demand_of
from tests.infra.conftest import SynthesizedMesh


def test_the_demand_of_a_mesh_is_that_of_its_templates(shop: SynthesizedMesh) -> None:
    demand = demand_of(read_assembly(shop.folder))
    assert (demand.namespace, len(demand.stacks)) == ("shop", len(shop.templates))
    assert demand.roles == len(shop.resources("AWS::IAM::Role"))
    assert demand.policies == len(shop.resources("AWS::IAM::ManagedPolicy"))
    sources = [each for each in shop.resources("AWS::Lambda::EventSourceMapping") if "ScalingConfig" in each]
    names = {each["EventSourceArn"].rpartition(":")[2] for each in sources}
    assert names <= demand.in_flight.keys() <= {each["QueueName"] for each in shop.resources("AWS::SQS::Queue")}
    assert demand.source_concurrency >= sum(each["ScalingConfig"]["MaximumConcurrency"] for each in sources)
    application = shop.one("AWS::EMRServerless::Application")
    assert f"{demand.max_vcpu} vCPU" == application["MaximumCapacity"]["Cpu"]
    # The stacks need no newer bootstrap than that of 2021, and name no account.
    assert (demand.bootstrap_version, demand.account, demand.region) == (6, None, None)


def test_every_resource_that_has_a_name_is_looked_up(shop: SynthesizedMesh) -> None:
    named = demand_of(read_assembly(shop.folder)).named("123456789012", "eu-central-1")
    kinds = {
        kind: sum(resource.kind == kind for resource in named) for kind in ("table", "bucket", "queue", "log group")
    }
    assert kinds == {
        "table": len(shop.resources("AWS::DynamoDB::Table")),
        "bucket": 1,
        "queue": len(shop.resources("AWS::SQS::Queue")),
        "log group": len(shop.resources("AWS::Logs::LogGroup")),
    }
    assert NamedResource("bucket", "asya-shop-123456789012-eu-central-1") in named
    assert not [resource for resource in named if "{" in resource.name]
