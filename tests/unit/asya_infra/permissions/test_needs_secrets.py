"""Permissions to read secrets: exactly those of the actor."""

from fnmatch import fnmatchcase

import pytest

from asya_infra.addresses import Addresses
from asya_infra.permissions.needs import secret_grants

PLACE = Addresses(namespace="shop", partition="aws", region="r", account="1", url_suffix="amazonaws.com")
GRANTS = secret_grants(["shop/rates", "ssm:/shop/token", "ssm:plain", "shop/rates"], PLACE)
READ, READ_PARAMETER = "secretsmanager:GetSecretValue", "ssm:GetParameter"
SECRET, PARAMETER = "arn:aws:secretsmanager:r:1:secret:", "arn:aws:ssm:r:1:parameter/"


def allowed(action: str, resource: str) -> bool:
    return any(
        action in grant.actions and any(fnmatchcase(resource, pattern) for pattern in grant.resources)
        for grant in GRANTS
    )


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        (READ, f"{SECRET}shop/rates-a1B2c3"),
        (READ_PARAMETER, f"{PARAMETER}shop/token"),
        (READ_PARAMETER, f"{PARAMETER}plain"),
    ],
)
def test_its_own_secrets_are_granted(action: str, resource: str) -> None:
    assert allowed(action, resource)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        (READ, f"{SECRET}shop/rates"),
        (READ, f"{SECRET}shop/rates-other-a1B2c3"),
        (READ, f"{SECRET}shop/rates-a1B2c"),
        (READ, f"{SECRET}other-a1B2c3"),
        (READ_PARAMETER, f"{PARAMETER}shop/token/more"),
        (READ_PARAMETER, f"{PARAMETER}shop"),
        ("secretsmanager:PutSecretValue", f"{SECRET}shop/rates-a1B2c3"),
        ("secretsmanager:DescribeSecret", f"{SECRET}shop/rates-a1B2c3"),
        ("ssm:GetParametersByPath", f"{PARAMETER}shop/token"),
    ],
)
def test_nothing_else_is_granted(action: str, resource: str) -> None:
    assert not allowed(action, resource)


def test_an_actor_without_secrets_has_no_permissions() -> None:
    assert secret_grants([], PLACE) == []


def test_no_pattern_needs_a_reason() -> None:
    assert [grant.wildcards() for grant in GRANTS] == [[], []]
