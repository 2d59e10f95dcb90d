"""Which Spark applications a deployment changes or deletes."""

from typing import Any

from asya_infra.deployment.applications import ApplicationChange, application_changes, application_tags


def template(**applications: dict[str, Any]) -> dict[str, Any]:
    resources = {
        name: {"Type": "AWS::EMRServerless::Application", "Properties": properties}
        for name, properties in applications.items()
    }
    return {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}, **resources}}


SMALL, LARGE = {"MaximumCapacity": {"Cpu": "16 vCPU"}}, {"MaximumCapacity": {"Cpu": "64 vCPU"}}


def test_an_unchanged_application_is_left_alone() -> None:
    same = {"Asya-shop-spark": template(Application=SMALL)}
    assert application_changes(same, same) == []
    with_metadata = template(Application=SMALL)
    with_metadata["Resources"]["Application"]["Metadata"] = {"aws:cdk:path": "x"}
    assert application_changes(same, {"Asya-shop-spark": with_metadata}) == []


def test_a_new_application_needs_no_stop() -> None:
    assert application_changes({}, {"Asya-shop-spark": template(Application=SMALL)}) == []
    assert application_changes({"Asya-shop-spark": template()}, {"Asya-shop-spark": template(Application=SMALL)}) == []


def test_a_changed_application() -> None:
    deployed, synthesized = template(Application=SMALL), template(Application=LARGE)
    assert application_changes({"Asya-shop-spark": deployed}, {"Asya-shop-spark": synthesized}) == [
        ApplicationChange("Asya-shop-spark", "Application", "changes")
    ]


def test_another_network_is_a_change() -> None:
    """EMR Serverless refuses it while the application is started."""
    inside = {**SMALL, "NetworkConfiguration": {"SubnetIds": ["subnet-01234567"], "SecurityGroupIds": ["sg-01234567"]}}
    moved = {**inside, "NetworkConfiguration": {**inside["NetworkConfiguration"], "SubnetIds": ["subnet-76543210"]}}
    for before, after in ((SMALL, inside), (inside, moved), (inside, SMALL)):
        deployed, synthesized = template(Application=before), template(Application=after)
        assert application_changes({"Asya-shop-spark": deployed}, {"Asya-shop-spark": synthesized}) == [
            ApplicationChange("Asya-shop-spark", "Application", "changes")
        ]


def test_an_application_whose_stack_is_gone() -> None:
    assert application_changes({"Asya-shop-spark": template(Application=SMALL)}, {"Asya-shop-state": {}}) == [
        ApplicationChange("Asya-shop-spark", "Application", "deletes")
    ]


def test_an_application_that_moves_to_its_own_stack() -> None:
    deployed = {"Asya-shop-functions-0": template(SparkApplication=SMALL)}
    synthesized = {"Asya-shop-functions-0": template(), "Asya-shop-spark": template(Application=SMALL)}
    assert application_changes(deployed, synthesized) == [
        ApplicationChange("Asya-shop-functions-0", "SparkApplication", "deletes")
    ]


def test_the_tags_of_an_application_are_those_of_its_parameter() -> None:
    parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Tags": {"team": "orders"}}}
    assert application_tags({"Resources": {"ApplicationId": parameter}}) == {"team": "orders"}
    assert application_tags({}) == {}
