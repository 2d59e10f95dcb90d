"""For every kind of function: what it needs is allowed; what belongs to a neighbour or to another stage is denied.

The policies of the templates are evaluated, inline and managed ones. `tests/cloud/test_iam_matrix.py` asks the local cloud.
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.doubles.iam import Request, is_allowed
from tests.doubles.iam_matrix import (
    BUCKET,
    FORBIDDEN,
    GET,
    NEEDED,
    PASS,
    PUT,
    READ_ITEM,
    STAGE_BUCKET,
    TO_EMR,
    WRITE_ITEM,
    role_arn,
)


def statements(mesh: Any, function: str) -> list[dict[str, Any]]:
    """Return the statements of all policies of a role."""
    role = mesh.one("AWS::IAM::Role", RoleName=f"asya-shop-{function}-<Region>")
    documents = [policy["PolicyDocument"] for policy in role["Policies"]]
    managed = {
        f"<{name}>": resource["Properties"]["PolicyDocument"]
        for template in mesh.templates.values()
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    documents += [managed[arn] for arn in role.get("ManagedPolicyArns", [])]
    return [statement for document in documents for statement in document["Statement"]]


def request(action: str, resource: str) -> Request:
    return Request(action, resource, TO_EMR if action == PASS else {})


def needed(action: str, resource: str) -> Request:
    """A call that a function makes; what it reads or puts beside claims in the table of claims is the list of roles."""
    call = request(action, resource)
    by_key = action in {READ_ITEM, WRITE_ITEM}
    return replace(call, context={"dynamodb:LeadingKeys": "ROLE#AROAEXAMPLE"}) if by_key else call


@pytest.mark.parametrize("function", sorted(NEEDED))
def test_a_function_may_do_what_it_needs(shop: Any, function: str) -> None:
    policies = statements(shop, function)
    assert [call for call in NEEDED[function] if not is_allowed(policies, needed(*call))] == []


@pytest.mark.parametrize("function", sorted(FORBIDDEN))
def test_a_function_may_not_touch_its_neighbours(shop: Any, function: str) -> None:
    policies = statements(shop, function)
    assert [call for call in FORBIDDEN[function] if is_allowed(policies, request(*call))] == []


@pytest.mark.parametrize("function", sorted(NEEDED))
def test_a_function_may_do_nothing_in_another_stage(shop: Any, function: str) -> None:
    """The names of a stage begin with those of the mesh: `asya-shop-test-intake`."""
    policies = statements(shop, function)
    for action, resource in NEEDED[function]:
        elsewhere = resource.replace(BUCKET, STAGE_BUCKET).replace("asya-shop-", "asya-shop-test-")
        elsewhere = elsewhere.replace("asya-shop/", "asya-shop-test/").replace("-test-test-", "-test-")
        if elsewhere != resource:
            assert not is_allowed(policies, request(action, elsewhere)), elsewhere


def test_the_matrix_has_every_function(shop: Any) -> None:
    """A new kind of function needs a row."""
    roles = {role["RoleName"] for role in shop.resources("AWS::IAM::Role") if "RoleName" in role}
    known = {f"asya-shop-{function}-<Region>" for function in NEEDED}
    alike = {"free", "x-fan-in", "x-pause", "x-index", "x-job-x-index", "x-gateway-live"}
    assert roles - known == {f"asya-shop-{function}-<Region>" for function in alike}
    assert NEEDED.keys() == FORBIDDEN.keys()


def test_job_roles_are_passed_to_emr_alone(shop: Any) -> None:
    policies = statements(shop, "x-dispatch")
    role = role_arn("asya-shop-x-job-crunch")
    assert is_allowed(policies, Request(PASS, role, TO_EMR))
    assert not is_allowed(policies, Request(PASS, role, {"iam:PassedToService": "lambda.amazonaws.com"}))
    assert not is_allowed(policies, Request(PASS, role, {}))


def test_a_denial_wins() -> None:
    allow = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    deny = {"Effect": "Deny", "Action": GET, "Resource": "*"}
    assert not is_allowed([allow, deny], request(GET, "arn:aws:s3:::b/k"))
    assert is_allowed([allow, deny], request(PUT, "arn:aws:s3:::b/k"))
