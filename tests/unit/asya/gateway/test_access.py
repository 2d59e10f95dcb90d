"""protocol §13: roles of the mesh, operators, owners and other callers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.gateway.access import AccessRules, IamIdentity, TokenIdentity
from asya.protocol import names
from asya.protocol.mesh_table import Actor, Gateway, MeshTable

ACCOUNT = "123456789012"
ACTORS = {"inspect-dataset": Actor(kind="handler"), "count": Actor(kind="spark"), "x-sink": Actor(kind="crew")}


def rules(*operators: str) -> AccessRules:
    table = MeshTable(namespace="flights", actors=ACTORS, operators=operators)
    return AccessRules(table, ACCOUNT, "us-east-1")


def session(role: str, account: str = ACCOUNT) -> IamIdentity:
    return IamIdentity(f"arn:aws:sts::{account}:assumed-role/{role}/some-session", "AROAEXAMPLE:some-session")


USER = IamIdentity(f"arn:aws:iam::{ACCOUNT}:user/team/alice", "AIDAALICE")


@pytest.mark.rule("13.roles")
@pytest.mark.parametrize("operators", [(), ("*",)])
@pytest.mark.parametrize(
    "function",
    ["inspect-dataset", "count", "x-job-count", "x-sink", names.COMPLETION, names.REPORTS, names.GATEWAY_API],
)
def test_no_role_of_the_mesh_is_an_operator(function: str, operators: tuple[str, ...]) -> None:
    caller = rules(*operators).caller(session(names.role_name("flights", function, "us-east-1")))
    assert (caller.is_operator, caller.principal) == (False, "AROAEXAMPLE")


@pytest.mark.parametrize(
    "identity",
    [
        session(names.role_name("other", "inspect-dataset", "us-east-1")),
        session(names.role_name("flights", "inspect-dataset", "eu-west-1")),
        session(names.role_name("flights", "inspect-dataset", "us-east-1"), account="999999999999"),
        session(names.role_name("flights", "x-job-inspect-dataset", "us-east-1")),
        IamIdentity(f"arn:aws:iam::{ACCOUNT}:user/{names.role_name('flights', 'x-sink', 'us-east-1')}", "AIDAX"),
    ],
)
def test_similar_identities_are_no_roles_of_the_mesh(identity: IamIdentity) -> None:
    assert rules().caller(identity).is_operator


def test_without_named_operators_every_signer_is_an_operator() -> None:
    assert rules().caller(USER).is_operator


@pytest.mark.rule("13.operators")
@pytest.mark.parametrize(
    ("operator", "identity", "expected"),
    [
        (f"arn:aws:iam::{ACCOUNT}:user/team/alice", USER, True),
        (f"arn:aws:iam::{ACCOUNT}:user/team/*", USER, True),
        (f"arn:aws:iam::{ACCOUNT}:user/bob", USER, False),
        (f"arn:aws:iam::{ACCOUNT}:role/Admin", session("Admin"), True),
        (f"arn:aws:iam::{ACCOUNT}:role/path/of/Admin", session("Admin"), True),
        (f"arn:aws:iam::{ACCOUNT}:role/Adm*", session("Admin"), True),
        (f"arn:aws:iam::{ACCOUNT}:role/Admin", session("Administrator"), False),
        (f"arn:aws:iam::{ACCOUNT}:role/Admin", session("Admin", account="999999999999"), False),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/Admin/some-session", session("Admin"), True),
        ("*", USER, True),
    ],
)
def test_operators_are_named_by_user_or_role(operator: str, identity: IamIdentity, expected: bool) -> None:
    assert rules(operator).caller(identity).is_operator is expected


@pytest.mark.rule("13.operators")
def test_owners_see_their_own_and_operators_everything() -> None:
    alice = rules("nobody").caller(USER)
    assert [alice.may_see(owner) for owner in ("AIDAALICE", "AIDABOB", None)] == [True, False, False]
    operator = rules("*").caller(USER)
    assert all(operator.may_see(owner) for owner in ("AIDAALICE", "AIDABOB", None))


def test_every_session_of_a_role_owns_what_the_role_owns() -> None:
    one = rules("nobody").caller(IamIdentity(session("Analysts").arn, "AROAXYZ:monday"))
    other = rules("nobody").caller(IamIdentity(session("Analysts").arn, "AROAXYZ:tuesday"))
    assert one.principal == other.principal == "AROAXYZ"


# --- people with a token (JWT)

ISSUER = "https://login.example/"


def bearer(subject: str = "alice", issuer: str = ISSUER, **claims: str | tuple[str, ...]) -> TokenIdentity:
    values = {name: value if isinstance(value, tuple) else (value,) for name, value in claims.items()}
    return TokenIdentity(issuer, subject, values)


@pytest.mark.rule("13.jwt.operators")
def test_the_holder_of_a_token_is_by_default_no_operator() -> None:
    caller = rules().caller(bearer())
    assert (caller.principal, caller.is_operator) == (f"jwt:alice#{ISSUER}", False)


@pytest.mark.rule("13.jwt.owner")
@pytest.mark.parametrize(
    "subject", ["AIDAALICE", "AROAEXAMPLE", "AROAEXAMPLE:some-session", ":AIDAALICE", "123456789012"]
)
def test_no_subject_owns_what_an_iam_principal_owns(subject: str) -> None:
    people = rules("nobody")
    owner = people.caller(bearer(subject)).principal
    for user_id in ("AIDAALICE", "AROAEXAMPLE:some-session", "123456789012", owner):
        signer = people.caller(IamIdentity(f"arn:aws:iam::{ACCOUNT}:user/x", user_id))
        assert signer.principal != owner
        assert not signer.may_see(owner)
        assert not people.caller(bearer(subject)).may_see(signer.principal)


@pytest.mark.rule("13.jwt.owner")
def test_subjects_of_two_issuers_are_two_callers() -> None:
    people = [
        ("a", ISSUER),
        ("a", "https://other.example"),
        ("a#https://other.example", ISSUER),
        ("a#" + ISSUER, ISSUER),
    ]
    owners = {rules().caller(bearer(subject, issuer)).principal for subject, issuer in people}
    assert len(owners) == len(people)


@pytest.mark.rule("13.jwt.operators")
@pytest.mark.parametrize(
    ("operator", "identity", "expected"),
    [
        ("groups=mesh-operators", bearer(groups=("people", "mesh-operators")), True),
        ("groups=mesh-operators", bearer(groups=("people",)), False),
        ("groups=mesh-operators", bearer(groups=("mesh-operators x",)), False),
        ("groups=mesh-operators", bearer(group=("mesh-operators",)), False),
        ("groups=mesh-*", bearer(groups=("mesh-operators",)), True),
        ("groups=mesh-*", bearer(groups=("mesh-\noperators",)), True),
        ("groups=mesh", bearer(groups=("mesh\n",)), False),
        ("https://example.com/roles=admin", bearer(**{"https://example.com/roles": "admin"}), True),
        ("sub=alice", bearer(), True),
        ("sub=alice", bearer("bob", sub="alice"), False),
        ("sub=*", bearer("bob"), True),
        ("*", bearer(), False),
        ("*alice*", bearer(), False),
        (f"arn:aws:iam::{ACCOUNT}:user/team/alice", bearer(arn=f"arn:aws:iam::{ACCOUNT}:user/team/alice"), False),
        (f"arn:aws:iam::{ACCOUNT}:user/a=b", bearer(**{f"arn:aws:iam::{ACCOUNT}:user/a": "b"}), False),
    ],
)
def test_operators_are_named_by_claim(operator: str, identity: TokenIdentity, expected: bool) -> None:
    assert rules(operator).caller(identity).is_operator is expected


def test_with_operators_named_by_claim_no_signer_is_an_operator() -> None:
    assert not rules("groups=mesh-operators").caller(USER).is_operator
    assert not rules("arn=*").caller(USER).is_operator
    assert (
        rules(f"arn:aws:iam::{ACCOUNT}:user/a=b")
        .caller(IamIdentity(f"arn:aws:iam::{ACCOUNT}:user/a=b", "AIDAX"))
        .is_operator
    )


def tenants(claim: str | None) -> AccessRules:
    """The rules of a mesh that serves owners in turns."""
    actors = {**ACTORS, "count": Actor(kind="spark", fair_by="owner")}
    gateway = Gateway() if claim is None else Gateway(tenant_claim=claim)
    return AccessRules(MeshTable(namespace="flights", actors=actors, gateway=gateway), ACCOUNT, "us-east-1")


@pytest.mark.rule("13.tenant")
@pytest.mark.parametrize(
    ("claim", "identity", "expected"),
    [
        (None, USER, "AIDAALICE"),
        (None, bearer(org="acme"), f"jwt:alice#{ISSUER}"),
        ("org", USER, "AIDAALICE"),
        ("org", bearer(org="acme"), f"claim:acme#{ISSUER}"),
        ("org", bearer("bob", org="acme"), f"claim:acme#{ISSUER}"),
        ("org", bearer(), f"jwt:alice#{ISSUER}"),
        ("org", bearer(org=("acme", "other")), f"jwt:alice#{ISSUER}"),
        ("org", bearer(tenant="acme"), f"jwt:alice#{ISSUER}"),
        ("org", None, ""),
    ],
)
def test_13_the_tenant_is_what_was_proved(
    claim: str | None, identity: IamIdentity | TokenIdentity | None, expected: str
) -> None:
    assert tenants(claim).tenant(identity) == expected


@pytest.mark.rule("13.tenant")
@given(value=st.text(max_size=40), subject=st.text(max_size=40))
def test_13_no_claim_is_the_tenant_of_a_subject_or_signer(value: str, subject: str) -> None:
    claimed = tenants("org").tenant(bearer("eve", org=value))
    assert claimed != tenants("org").tenant(bearer(subject))
    assert claimed != tenants("org").tenant(IamIdentity(f"arn:aws:iam::{ACCOUNT}:user/x", value))


def test_a_mesh_that_asks_for_no_tenant_has_none() -> None:
    assert rules().tenant(USER) == ""
