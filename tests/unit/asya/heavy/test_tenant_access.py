"""The folders of the tenant of a run in its session policy (`protocol §10.isolation.access`)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from asya.gateway.access import AccessRules, TokenIdentity
from asya.heavy.run_request import RunRequestError, session_policy
from asya.heavy.tenant_access import folder_name
from asya.protocol.job_runs import Member
from asya.protocol.mesh_table import Access, Actor, MeshTable, SparkJob
from asya_infra.permissions.evaluation import Request, is_allowed
from tests.doubles.job_runs import MANIFEST
from tests.unit.asya.heavy.test_run_request import DEPLOYMENT, JOB

ISSUER = "https://login.example.com/"
ACCESS = (
    Access(kind="bucket", name="data", read=("raw/{tenant}/*", "common/*"), write=("clean/{tenant}/*",)),
    Access(kind="bucket", name="lake", write=("{tenant}/*",)),
)
ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
PATHS = {
    "the-data-bucket/some/prefix/data/raw/{}/a": ["s3:GetObject"],
    "the-data-bucket/some/prefix/data/raw/{}": ["s3:GetObject"],
    "the-data-bucket/some/prefix/data/clean/{}/a": [*ACTIONS],
    "lake/{}/a/b": [*ACTIONS],
}


def policy(*tenants: str) -> list[dict[str, object]]:
    members = tuple(
        Member(id=f"e{n}", position=0, attempt=1, admitted_at="", tenant=each) for n, each in enumerate(tenants)
    )
    statements: list[dict[str, object]] = json.loads(
        session_policy(replace(MANIFEST, members=members), JOB, DEPLOYMENT, ACCESS)
    )["Statement"]
    return statements


def allowed(statements: list[dict[str, object]], path: str) -> list[str]:
    return [action for action in ACTIONS if is_allowed(statements, Request(action, f"arn:aws-cn:s3:::{path}"))]


def tenant_of(value: str) -> str:
    """The tenant of a caller whose token has this claim."""
    table = MeshTable(
        namespace="shop", actors={"crunch": Actor(kind="spark", spark=SparkJob(job="j.f"), fair_by="owner")}
    )
    gateway = replace(table.gateway, tenant_claim="org")
    access = AccessRules(replace(table, gateway=gateway), "1" * 12, "eu-west-1")
    return access.tenant(TokenIdentity(subject="ann", issuer=ISSUER, claims={"org": (value,)}))


@pytest.mark.rule("10.isolation.access")
@given(st.text(max_size=70), st.text(max_size=70))
def test_10_no_two_tenants_have_one_name(first: str, second: str) -> None:
    names = [folder_name(tenant_of(value)) for value in (first, second)]

    assert names[0] in (first, None)
    assert first == second or names[0] is None or names[0] != names[1]


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize("value", ["acme", "a", "ann@example.com", "org=7", "9-x_y", "a" * 64])
def test_10_a_value_is_the_name_of_its_tenant(value: str) -> None:
    assert folder_name(tenant_of(value)) == value


NAMELESS = ["", "a" * 65, "*", "ac*", "acme/x", "..", ".hidden", "${aws:username}", "a?", "a b", "ä", "acme#x", "a\n"]


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize(
    "tenant",
    [
        *map(tenant_of, NAMELESS),
        "",
        "trigger:acme",
        "jwt:acme#https://login.example.com/",
        "AROAEXAMPLE",
        "claim:acme",
        "f" * 64,
    ],
)
def test_10_a_run_without_a_name_for_keys_does_not_start(tenant: str) -> None:
    with pytest.raises(RunRequestError, match=r"access of actor 'heavy' names \{tenant\}"):
        policy(tenant)


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize("tenants", [("acme", "bolt"), ()])
def test_10_a_run_of_several_tenants_or_none_does_not_start(tenants: tuple[str, ...]) -> None:
    """Such a run was formed before the actor had its `isolation`."""
    with pytest.raises(RunRequestError, match="this run has no tenant"):
        policy(*map(tenant_of, tenants))


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize(("path", "actions"), PATHS.items())
def test_10_a_run_has_the_folders_of_its_tenant_alone(path: str, actions: list[str]) -> None:
    statements = policy(tenant_of("acme"), tenant_of("acme"))

    assert allowed(statements, path.format("acme")) == actions
    for other in ("bolt", "acme2", "acm", "acme-", "", "Acme"):
        assert allowed(statements, path.format(other)) == []


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize(
    ("prefix", "is_listed"),
    [("raw/acme/", True), ("raw/acme", True), ("raw/acme2", False), ("raw/", False), ("raw/bolt/", False)],
)
def test_10_a_run_lists_the_folders_of_its_tenant_alone(prefix: str, is_listed: bool) -> None:
    request = Request("s3:ListBucket", "arn:aws-cn:s3:::the-data-bucket", {"s3:prefix": f"some/prefix/data/{prefix}"})

    assert is_allowed(policy(tenant_of("acme")), request) == is_listed
