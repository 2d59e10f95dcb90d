"""Tests the numbers in `docs/how-to/going-to-production.md` against the templates of the example and the limits."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from asya_infra.assembly import read_assembly
from asya_infra.constructs.observability.mesh_alarms import mesh_alarms
from asya_infra.limits import aws_limits as limits
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.mesh_file.notify_model import NotifySection
from asya_infra.options import Options
from asya_infra.preflight.checks import LAMBDA_CONCURRENCY, SPARK_VCPU
from docs_site.reference.costs import with_costs, write_light_mesh
from tests.infra.conftest import SynthesizedMesh, synthesize
from tests.paths import PROJECT

PAGE = (PROJECT / "docs" / "how-to" / "going-to-production.md").read_text()


def row(name: str) -> str:
    """The rest of the table row that begins with this cell."""
    [match] = re.findall(rf"^\| {re.escape(name)} \|(.*)$", PAGE, re.MULTILINE)
    return str(match)


@pytest.mark.parametrize(("kind", "actor"), [("light actor", "inspectdataset"), ("heavy actor", "cleanflights")])
def test_the_resources_of_an_actor(example: SynthesizedMesh, kind: str, actor: str) -> None:
    kinds = Counter(
        resource["Type"]
        for template in example.templates.values()
        for name, resource in template["Resources"].items()
        if name.lower().startswith(actor)
    )
    assert int(row(kind).split(":")[0]) == sum(kinds.values())


def test_the_sizes_and_costs_are_those_of_the_templates(example: SynthesizedMesh, tmp_path: Path) -> None:
    light = synthesize(tmp_path / "out", mesh=str(write_light_mesh(tmp_path / "code")))
    example_templates, light_templates = (read_assembly(each.folder).templates for each in (example, light))
    # The fixture names an existing application.
    spark = {"Resources": {kind: {"Type": f"AWS::{kind}"} for kind in ("EMRServerless::Application", "SSM::Parameter")}}
    own = {**example_templates, "Asya-flights-spark": spark}
    assert with_costs(PAGE, own, light_templates) == PAGE, "run `make generated`"


def test_the_rules_of_the_example(example: SynthesizedMesh) -> None:
    assert row("EventBridge, rules of a bus").split("|")[1].strip() == str(len(example.resources("AWS::Events::Rule")))


def test_the_alarms_of_the_example() -> None:
    file = PROJECT / "mesh.yaml"
    loaded = load_mesh(file, "")
    told = replace(loaded, mesh=structs.replace(loaded.mesh, notify=NotifySection(email=("ops@example.org",))))
    alarms = len(mesh_alarms(Mesh(told, Options(mesh=file))))
    assert f"About {alarms} alarms" in PAGE
    assert f"About {alarms}" in row("CloudWatch, alarms")


def test_the_quotas_are_those_of_the_checks() -> None:
    for name, limit in (
        (f"Lambda, concurrent executions (`{LAMBDA_CONCURRENCY}`)", limits.CONCURRENCY_OF_AN_ACCOUNT),
        ("SQS, messages in flight of a queue", limits.IN_FLIGHT),
        ("IAM, roles", limits.ROLES_OF_AN_ACCOUNT),
        ("IAM, managed policies", limits.MANAGED_POLICIES_OF_AN_ACCOUNT),
        ("EventBridge, rules of a bus", limits.RULES_OF_AN_ACCOUNT),
        ("CloudWatch, alarms", limits.ALARMS_OF_AN_ACCOUNT),
        ("CloudFormation, resources of a stack", limits.RESOURCES_OF_A_STACK),
        ("CloudFormation, bytes of a template", limits.TEMPLATE),
    ):
        default, need = row(name).strip(" |").split(" | ")
        assert default.startswith(f"{limit.value:,}")
        if limit.usable != limit.value:
            assert need.startswith(f"{limit.usable:,} at most")
    assert f"AWS keeps {limits.UNRESERVED_CONCURRENCY.value}" in row("Lambda, unreserved executions")
    assert row(f"EMR Serverless, vCPU at once (`{SPARK_VCPU}`)").startswith(" 16 ")
