"""Permissions to report to gateways of other meshes: exactly those that the mesh file names."""

import pytest

from asya.protocol.mesh_table import Actor, Gateway, MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import Place, api_of, function_grants

PLACE = Addresses(namespace="shop", partition="aws", region="eu-west-1", account="1", url_suffix="amazonaws.com")
OTHER = "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"


def calls(*hosts: str, private: tuple[str, ...] = ()) -> list[Grant]:
    gateway = Gateway(foreign_gateways=hosts, notification_hosts=private)
    table = MeshTable(namespace="shop", actors={"a": Actor(kind="handler")}, gateway=gateway)
    allowed = function_grants("x-reports", Place(addresses=PLACE, table=table))
    return [grant for grant in allowed if "execute-api:Invoke" in grant.actions]


@pytest.mark.rule("3.gateway-url.foreign")
def test_x_reports_calls_the_named_gateways_for_reports_only() -> None:
    [grant] = calls(OTHER, "mesh.example.com", "localhost:8080")
    assert grant.actions == ("execute-api:Invoke",)
    assert grant.resources == ("arn:aws:execute-api:eu-west-1:1:a1b2c3d4e5/$default/POST/api/v1/mesh/events",)


def test_without_foreign_gateways_it_calls_none() -> None:
    assert calls() == []
    assert calls("mesh.example.com") == []


def test_receivers_of_notifications_get_no_reports() -> None:
    assert calls(private=(OTHER,)) == []


@pytest.mark.parametrize(
    ("host", "api"),
    [
        (OTHER, ("a1b2c3d4e5", "eu-west-1")),
        ("a1.execute-api.cn-north-1.amazonaws.com.cn", ("a1", "cn-north-1")),
        ("a1.execute-api.eu-west-1.amazonaws.com.evil.example", None),
        ("x.a1.execute-api.eu-west-1.amazonaws.com", None),
        ("*.execute-api.eu-west-1.amazonaws.com", None),
    ],
)
def test_the_api_of_a_host(host: str, api: tuple[str, str] | None) -> None:
    assert api_of(host) == api
