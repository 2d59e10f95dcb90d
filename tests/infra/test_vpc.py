"""`vpc` in the templates: user code is in it, the mesh's own code is not."""

from typing import Any

import pytest

from tests.doubles.iam import Request, is_allowed
from tests.infra.private_mesh import GROUP, SPARK_SUBNETS, SUBNETS
from tests.infra.test_iam_matrix import statements

WITH_USER_CODE = {"intake", "score", "free", "audit"}
INTERFACES = ("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DeleteNetworkInterface")


def functions(mesh: Any) -> dict[str, dict[str, Any]]:
    return {each["FunctionName"].removeprefix("asya-shop-"): each for each in mesh.resources("AWS::Lambda::Function")}


def test_the_functions_with_user_code_are_in_the_vpc(private: Any) -> None:
    networks = {name: each["VpcConfig"] for name, each in functions(private).items() if "VpcConfig" in each}
    assert networks == {name: {"SubnetIds": SUBNETS, "SecurityGroupIds": [GROUP]} for name in WITH_USER_CODE}


def test_job_runs_are_in_their_own_subnets(private: Any) -> None:
    network = private.one("AWS::EMRServerless::Application")["NetworkConfiguration"]
    assert network == {"SubnetIds": SPARK_SUBNETS, "SecurityGroupIds": [GROUP]}


def source(function: str) -> dict[str, str]:
    return {"lambda:SourceFunctionArn": f"arn:aws:lambda:eu-west-1:111122223333:function:asya-shop-{function}"}


@pytest.mark.parametrize("function", sorted(WITH_USER_CODE))
def test_lambda_may_connect_the_function_and_the_functions_code_may_not(private: Any, function: str) -> None:
    own = statements(private, function)
    for action in INTERFACES:
        assert is_allowed(own, Request(action, "*", {}))
        assert not is_allowed(own, Request(action, "*", source(function)))


@pytest.mark.parametrize("function", ["crunch", "x-job-crunch", "x-sink", "x-dispatch", "x-push", "x-gateway-api"])
def test_other_roles_have_no_permissions_for_network_interfaces(private: Any, function: str) -> None:
    own = statements(private, function)
    assert [action for action in INTERFACES if is_allowed(own, Request(action, "*", {}))] == []


def test_without_the_option_nothing_is_in_a_vpc(shop: Any) -> None:
    text = str(shop.templates)
    assert "VpcConfig" not in text
    assert "NetworkConfiguration" not in text
    assert "ec2:" not in text
