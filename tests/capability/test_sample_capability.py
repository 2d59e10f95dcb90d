"""A capability that no file of the product names: a mesh file names `mesh/code/sample_capability`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from asya import testing
from asya.gateway.call_table import calls_of
from asya.gateway.lambdas.openapi import document
from asya.protocol.mesh_table import MeshTable, decode_table, encode_table
from asya.senders.statements import Speaker, speaker_of
from asya_infra.addresses import Addresses
from asya_infra.limits.gate import check_mesh
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh, to_table
from asya_infra.options import read_options
from asya_infra.permissions.needs import Place
from tests.doubles.iam_matrix import Matrix
from tests.infra.conftest import SynthesizedMesh, synthesize
from tests.infra.test_iam_matrix import ACCOUNT, REGION, Role
from tests.paths import PROJECT

MESH = Path(__file__).parent / "mesh" / "mesh.yaml"
FOLDER = MESH.parent / "code" / "sample_capability"


@pytest.fixture(scope="module")
def table() -> MeshTable:
    return decode_table(encode_table(to_table(load_mesh(MESH))))


def test_it_is_small_and_no_file_of_the_product_names_it() -> None:
    assert len([*FOLDER.glob("*.py")]) <= 10
    found = subprocess.run(
        [
            "git",
            "grep",
            "-lE",
            "sample_capability|x-stamp",
            "--",
            "functions",
            "infra",
            "asya_cli",
            "console",
            "app.py",
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""


def test_the_table_has_its_options_and_its_calls(table: MeshTable) -> None:
    assert table.actors["seal"].options == {"stamp": {"ink": "red", "copies": 2}}
    assert calls_of(table)[-1].route == "GET /api/v1/stamps"
    assert re.fullmatch(r"[0-9a-f]{12}", table.named_capabilities["sample_capability"])
    assert "/api/v1/stamps" in document(table, "https://gateway.example")["paths"]


@pytest.mark.rule("1.authority")
def test_its_kind_counts_as_code_of_users(table: MeshTable) -> None:
    assert not table.actors["seal"].continues
    assert speaker_of(table, "seal") is Speaker.CODE


def test_it_runs_in_the_kit() -> None:
    mesh = testing.Mesh(MESH)
    assert mesh.ask("GET", "/api/v1/stamps", dict[str, int]) == {}
    run = mesh.call("welcome", {"name": "Ada"})
    assert (run.result, run.actors) == ({"text": "Hello Ada"}, ("greet", "seal"))
    assert {key: content for key, content in mesh.objects.items() if key.startswith("stamps/")} == {
        f"stamps/seal/{run.id}-0": b"red",
        f"stamps/seal/{run.id}-1": b"red",
    }
    mesh.travel(minutes=2)
    assert mesh.ask("GET", "/api/v1/stamps", dict[str, int]) == {"seal": 2}


@pytest.fixture(scope="module")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> SynthesizedMesh:
    """Its templates: no finding of cdk-nag is unexplained."""
    return synthesize(tmp_path_factory.mktemp("stamped"), mesh=str(MESH))


def test_it_is_deployed_and_stays_within_the_limits(synthesized: SynthesizedMesh) -> None:
    functions = {each["FunctionName"]: each for each in synthesized.resources("AWS::Lambda::Function")}
    own = {
        name: each["Handler"] for name, each in functions.items() if each["Handler"].startswith("sample_capability.")
    }
    assert own == {
        "asya-stamped-seal": "sample_capability.functions.stamp",
        "asya-stamped-x-stamp-count": "sample_capability.functions.count",
        "asya-stamped-x-stamps": "sample_capability.functions.calls",
    }
    routes = {each["RouteKey"]: each for each in synthesized.resources("AWS::ApiGatewayV2::Route")}
    assert routes["GET /api/v1/stamps"]["AuthorizationType"] == "AWS_IAM"
    [bucket] = synthesized.resources("AWS::S3::Bucket")
    lifetimes = {each.get("Prefix"): each.get("ExpirationInDays") for each in bucket["LifecycleConfiguration"]["Rules"]}
    assert lifetimes["stamps/"] == 30
    alarm = synthesized.one("AWS::CloudWatch::Alarm", AlarmName="asya-stamped-stamps")
    assert (alarm["MetricName"], alarm["Threshold"]) == ("StampsCounted", 500)
    rule = synthesized.one("AWS::Events::Rule", Name="asya-stamped-stamp-count")
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    loaded = Mesh(load_mesh(MESH), read_options({"mesh": str(MESH)}.get, PROJECT))
    assert check_mesh(loaded, synthesized.folder) == []


def test_all_roles_allow_what_manifests_declare_and_no_more(synthesized: SynthesizedMesh, table: MeshTable) -> None:
    """Those of its functions, and those of the product beside them: the gateway reads no counts, and no stamps."""
    addresses = Addresses(
        namespace="stamped", partition="aws", region=REGION, account=ACCOUNT, url_suffix="amazonaws.com"
    )
    matrix = Matrix(Place(addresses=addresses, table=table, application="<id>"))
    assert {"seal", "x-stamps", "x-stamp-count"} <= {*matrix.functions}
    wrong = {}
    for function in matrix.roles:
        role = Role(synthesized, function, "stamped")
        wrong[function] = [
            call for call in matrix.calls if role.may(call, matrix.place) != matrix.allows(function, call)
        ]
    assert {function: calls for function, calls in wrong.items() if calls} == {}


def _asya(*arguments: str, folder: Path = MESH.parent) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "asya_cli.main", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_command_of_the_folder_has_its_subcommand(tmp_path: Path) -> None:
    assert "Print the number of stamps" in _asya("--help").stdout
    assert "Print the number of stamps" in _asya("stamps", "--help").stdout
    assert json.loads(_asya("schema").stdout)["$defs"]["Stamp"]["properties"]["copies"]["maximum"] == 9
    elsewhere = _asya("stamps", folder=tmp_path)
    assert elsewhere.returncode == 2
    assert elsewhere.stderr.startswith("asya: no such command 'stamps'")


@pytest.mark.parametrize("name", ["stamp", "count", "calls"])
def test_its_functions_import_no_manifest(name: str) -> None:
    """And neither the registry: as on Lambda, only what the entry point itself imports."""
    code = f"import sys, sample_capability.functions as own; own.{name}; print(*sys.modules)"
    path = os.pathsep.join([str(FOLDER.parent), str(PROJECT / "functions")])
    modules = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "sample_capability.options" in modules
    assert [each for each in modules if each.endswith(".manifest") or each in {"asya.registry", "asya.manifest"}] == []
    assert not any(each.startswith(("asya_infra", "pydantic")) for each in modules)
