"""The roles in the templates allow what manifests declare, for each call on each object of the mesh, and no more.

The policies of the templates are evaluated, inline and managed ones. What the mesh file grants, and the roles of job runs, have
rows here: no manifest declares them. `tests/cloud/test_iam_matrix.py` asks the local cloud.
"""

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from asya.needs import Resource
from asya.registry import PRODUCT
from asya_infra.addresses import Addresses
from asya_infra.mesh_file import load_mesh, to_table
from asya_infra.permissions.needs import Place
from tests.doubles.iam import Request, concrete, is_allowed
from tests.doubles.iam_matrix import Call, Matrix, OnResource
from tests.infra.conftest import HERE, synthesize

ACCOUNT, REGION = "111122223333", "eu-west-1"
STREAMS = "x-gateway-live"
"""The function of continuous streams, which a construct makes: it may do what x-gateway-stream may."""
JOBS = ("x-job-crunch", "x-job-x-index")
"""The roles of job runs."""
IDS = {Resource.APPLICATION, Resource.JOB_RUNS}
"""Their ARNs contain ids that only a deployment knows: the actions count."""
SHARED = {Resource.EVENT_SOURCES, Resource.FUNCTIONS, Resource.METRICS, *IDS}
"""No other mesh has resources of its own here, or their names have no room in a policy."""


@cache
def matrix(namespace: str = "shop", mesh: Path = HERE / "mesh" / "mesh.yaml") -> Matrix:
    """The matrix of the mesh, or of a stage."""
    addresses = Addresses(
        namespace=namespace, partition="aws", region=REGION, account=ACCOUNT, url_suffix="amazonaws.com"
    )
    table = to_table(load_mesh(mesh))
    return Matrix(Place(addresses=addresses, table=table, application="<id>"))


FUNCTIONS = [*matrix().roles, STREAMS]
"""Those with a role."""


def statements(mesh: Any, function: str, namespace: str = "shop") -> list[dict[str, Any]]:
    """Return the statements of all policies of a role."""
    role = mesh.one("AWS::IAM::Role", RoleName=f"asya-{namespace}-{function}-<Region>")
    documents = [policy["PolicyDocument"] for policy in role["Policies"]]
    managed = {
        f"<{name}>": resource["Properties"]["PolicyDocument"]
        for template in mesh.templates.values()
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    documents += [managed[arn] for arn in role.get("ManagedPolicyArns", [])]
    return [statement for document in documents for statement in document["Statement"]]


class Role:
    """What a role may do."""

    def __init__(self, mesh: Any, function: str, namespace: str = "shop") -> None:
        self.by_action: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for statement in map(concrete, statements(mesh, function, namespace)):
            actions = statement["Action"]
            for action in [actions] if isinstance(actions, str) else actions:
                assert "*" not in action
                self.by_action[action].append(statement)

    def may(self, call: Call, place: Place) -> bool:
        request = call.request(place)
        assert request is not None
        if isinstance(call, OnResource) and call.resource in IDS:
            return call.call in self.by_action
        return is_allowed(self.by_action.get(request.action, ()), request)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_allows_what_its_manifest_declares(shop: Any, function: str) -> None:
    role, declared = Role(shop, function), "x-gateway-stream" if function == STREAMS else function
    wrong = [call for call in matrix().calls if role.may(call, matrix().place) != matrix().allows(declared, call)]
    assert wrong == []


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> tuple[Any, Matrix]:
    """A mesh with an actor of each kind that a mesh file names, and its matrix."""
    needed: dict[str, dict[str, Any]] = {
        "end": {"handler": "orders.score", "handler_mode": "envelope", "validate": False},
        "wait": {"wait": {"for": "1h"}},
    }
    for option in PRODUCT.options.values():
        if option.is_required:
            needed |= {
                kind: {**needed.get(kind, {}), option.key: yaml.safe_load(option.example)} for kind in option.kinds
            }
    actors = {f"of-{kind.replace('_', '-')}": {"kind": kind, **needed.get(kind, {})} for kind in PRODUCT.kinds}
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "handlers").symlink_to(HERE / "mesh" / "handlers")
    mesh = folder / "mesh.yaml"
    mesh.write_text(json.dumps({"namespace": "shop", "code": "handlers", "actors": actors}))
    return synthesize(folder / "out", mesh=str(mesh)), matrix(mesh=mesh)


@pytest.mark.parametrize("kind", PRODUCT.kinds)
def test_a_role_of_each_kind_allows_what_its_manifest_declares(kinds: tuple[Any, Matrix], kind: str) -> None:
    mesh, declared = kinds
    function = f"of-{kind.replace('_', '-')}"
    role = Role(mesh, function)
    wrong = [call for call in declared.calls if role.may(call, declared.place) != declared.declares(function, call)]
    assert wrong == []


@pytest.mark.parametrize("function", [*FUNCTIONS, *JOBS])
def test_a_function_may_do_nothing_in_another_stage(shop: Any, function: str) -> None:
    """The names of a stage begin with those of the mesh: `asya-shop-test-intake`."""
    role, stage = Role(shop, function), matrix("shop-test")
    calls = [call for call in stage.calls if not (isinstance(call, OnResource) and call.resource in SHARED)]
    assert [call for call in calls if role.may(call, stage.place)] == []


def test_the_matrix_has_every_function(shop: Any) -> None:
    roles = {role["RoleName"] for role in shop.resources("AWS::IAM::Role") if "RoleName" in role}
    assert roles == {f"asya-shop-{function}-<Region>" for function in {*FUNCTIONS, *JOBS}}


BUCKET = "arn:aws:s3:::asya-shop-111122223333-eu-west-1"
ASSETS = "arn:aws:s3:::cdk-hnb659fds-assets-111122223333-eu-west-1"
GET, PUT, REMOVE, SECRET, PARAMETER = (
    *("s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
    *("secretsmanager:GetSecretValue", "ssm:GetParameter"),
)


def arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


GIVEN = {
    "intake": [
        (GET, f"{BUCKET}/data/raw/a.csv"),
        (PUT, f"{BUCKET}/data/clean/a.csv"),
        ("dynamodb:GetItem", arn("dynamodb", "table/rates")),
    ],
    "score": [
        (SECRET, arn("secretsmanager", "secret:shop/rates-a1B2c3")),
        (PARAMETER, arn("ssm", "parameter/shop/token")),
    ],
    "x-job-crunch": [
        (GET, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
        (PUT, f"{BUCKET}/runs/crunch/0000000001/attempts/a/part-0"),
        (REMOVE, f"{BUCKET}/runs/crunch/0000000001/attempts/a/"),
        (PUT, f"{BUCKET}/runs/crunch/0000000001/logs/applications/00a/jobs/00b/SPARK_DRIVER/stderr.gz"),
        (GET, f"{BUCKET}/pending/crunch/abc.json"),
        (GET, f"{BUCKET}/data/clean/part-0.parquet"),
        (PUT, f"{BUCKET}/data/stats/part-0.parquet"),
        (GET, f"{ASSETS}/asya-shop/abc.zip"),
        (SECRET, arn("secretsmanager", "secret:shop/crunch-a1B2c3")),
    ],
}
"""What the mesh file grants to code of users, and what job runs may do. Each is refused to all other roles."""
REFUSED = {
    "intake": [
        (GET, f"{BUCKET}/data/stats/a.csv"),
        (PUT, f"{BUCKET}/data/raw/a.csv"),
        ("dynamodb:PutItem", arn("dynamodb", "table/rates")),
    ],
    "score": [
        (GET, f"{BUCKET}/data/raw/a.csv"),
        (SECRET, arn("secretsmanager", "secret:shop/rates-test-a1B2c3")),
        (SECRET, arn("secretsmanager", "secret:partner-key-a1B2c3")),
        (PARAMETER, arn("ssm", "parameter/shop/token/other")),
    ],
    "x-job-crunch": [
        (GET, f"{BUCKET}/runs/x-index/0000000001/manifest.json"),
        (PUT, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
        (REMOVE, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
        (GET, f"{BUCKET}/pending/other/abc.json"),
        (PUT, f"{BUCKET}/pending/crunch/abc.json"),
        (PUT, f"{BUCKET}/results/index/days/x"),
        (REMOVE, f"{BUCKET}/data/clean/part-0.parquet"),
        (GET, f"{ASSETS}/asya-shop-test/abc.zip"),
        ("sqs:SendMessage", arn("sqs", "asya-shop-intake")),
    ],
}


@pytest.mark.parametrize("function", GIVEN)
def test_what_the_mesh_file_grants(shop: Any, function: str) -> None:
    policies = statements(shop, function)
    assert [call for call in GIVEN[function] if not is_allowed(policies, Request(*call))] == []
    assert [call for call in REFUSED[function] if is_allowed(policies, Request(*call))] == []


@pytest.mark.parametrize("function", GIVEN)
def test_what_the_mesh_file_grants_is_granted_to_one(shop: Any, function: str) -> None:
    """A job run reads files that functions of the mesh read or write too; the data are its own."""
    shared = (f"{BUCKET}/runs/", f"{BUCKET}/pending/")
    calls = [call for call in GIVEN[function] if not call[1].startswith(shared)]
    others = {each: statements(shop, each) for each in FUNCTIONS if each != function}
    assert [
        (each, call) for each, policies in others.items() for call in calls if is_allowed(policies, Request(*call))
    ] == []


def test_job_roles_are_passed_to_emr_alone(shop: Any) -> None:
    policies, role = statements(shop, "x-dispatch"), f"arn:aws:iam::{ACCOUNT}:role/asya-shop-x-job-crunch-{REGION}"
    for service, expected in (("emr-serverless", True), ("lambda", False)):
        context = {"iam:PassedToService": f"{service}.amazonaws.com"}
        assert is_allowed(policies, Request("iam:PassRole", role, context)) == expected
    assert not is_allowed(policies, Request("iam:PassRole", role))


def test_a_denial_wins() -> None:
    allow = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    deny = {"Effect": "Deny", "Action": GET, "Resource": "*"}
    assert not is_allowed([allow, deny], Request(GET, "arn:aws:s3:::b/k"))
    assert is_allowed([allow, deny], Request(PUT, "arn:aws:s3:::b/k"))
