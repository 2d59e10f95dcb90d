"""The roles in the templates: who may assume them, and that the gateway knows them."""

from typing import Any

import pytest

from asya.gateway.access import mesh_roles
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import Options
from tests.paths import PROJECT


def test_services_assume_roles_for_this_account_only(shop: Any) -> None:
    services = set()
    for role in shop.resources("AWS::IAM::Role"):
        [statement] = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": "<AccountId>"}}
        services.add(statement["Principal"]["Service"])
    assert services == {"lambda.amazonaws.com", "emr-serverless.amazonaws.com"}


@pytest.mark.rule("13.roles")
def test_the_gateway_knows_every_role_of_a_mesh(shop: Any) -> None:
    mesh_file = PROJECT / "tests" / "infra" / "mesh" / "mesh.yaml"
    table = Mesh(load_mesh(mesh_file, ""), Options(mesh=mesh_file)).table
    roles = {role["RoleName"] for role in shop.resources("AWS::IAM::Role")}
    assert roles <= mesh_roles(table, "<Region>")
