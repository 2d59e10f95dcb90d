"""Meshes with every option of the mesh file: AWS would accept each, and each change of one.

`make test` has the mesh with everything on, the one with nothing on, and the first one of the pairwise set. With
`ASYA_FULL_SIZE=1` the whole set is synthesized. `.build/combinations.txt` has each mesh and each change as it is done.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asya_infra.limits.gate import LimitError
from asya_infra.mesh_file.source import MeshFileError
from tests.infra.combinations import changes, policies
from tests.infra.combinations.judged import Accepted, Judge
from tests.infra.combinations.options import declared
from tests.infra.combinations.pairs import Pair, PairwiseMeshes
from tests.infra.combinations.samples import TAKE_AWAY
from tests.infra.combinations.synthesis import Synthesizer
from tests.infra.test_clean import distinct
from tests.paths import PROJECT

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))
ROWS = None if FULL else 1
REPORT = PROJECT / ".build" / "combinations.txt"
GROUP = 8
"""The options that one change has. A change with a problem is made again with each of them alone."""
SHOWN = {
    *("storage.kms_key", "vpc", "gateway.jwt", "gateway.streaming", "actors.*.pause.callback", "actors.*.pause.notify"),
    *("triggers.cron", "triggers.s3", "triggers.s3-own", "triggers.event", "triggers.webhook", "actors.*.spark.linger"),
    *(
        "spark.catalog",
        "spark.tables",
        "actors.*.secrets",
        "telemetry.collector",
        "stages",
        "notify.email",
        "notify.https",
    ),
}
"""What the mesh with everything on has at least."""


def report(line: str) -> None:
    """Write what is found as it is found: the whole set takes minutes."""
    REPORT.parent.mkdir(exist_ok=True)
    with REPORT.open("a") as file:
        file.write(f"{line}\n")


@pytest.fixture(scope="module", autouse=True)
def new_report() -> None:
    REPORT.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(tmp_path_factory.mktemp("combinations"), declared())


@pytest.fixture(scope="module")
def synthesize(judge: Judge, no_aws_environment: None) -> Synthesizer:
    return Synthesizer(judge.folder)


@pytest.fixture(scope="module")
def pairs(judge: Judge) -> PairwiseMeshes:
    found = PairwiseMeshes(judge)
    found.choose(ROWS)
    left = len(found.left)
    report(f"{len(found.meshes)} meshes have {found.pairs - left} of {found.pairs} pairs of values; {left} are in none")
    for reason, each in sorted(_by_reason(found.refused).items()):
        report(f"{len(each)} pairs are refused, such as {each[0]}: {reason}")
    return found


def _by_reason(refused: Mapping[Pair, str]) -> dict[str, list[Pair]]:
    """Return the pairs by the loader's words, without the names and the numbers in them."""
    found: dict[str, list[Pair]] = {}
    for pair, reason in refused.items():
        found.setdefault(re.sub(r"'[^']*'|\d+", "…", reason), []).append(pair)
    return found


@pytest.fixture(scope="module")
def everything(judge: Judge) -> Accepted:
    return judge.everything(TAKE_AWAY)


@pytest.fixture(scope="module")
def nothing(judge: Judge) -> Accepted:
    mesh = judge.accepted({"actors.light": 1})
    assert mesh is not None
    return mesh


@pytest.fixture(scope="module")
def meshes(everything: Accepted, nothing: Accepted, pairs: PairwiseMeshes) -> list[Accepted]:
    return [everything, nothing, *pairs.meshes]


def test_the_mesh_with_everything_on_has_what_is_deployed_most(everything: Accepted) -> None:
    assert set(everything.levels) >= SHOWN
    assert {name for name in everything.levels if name.startswith("actors.") and "*" not in name} == {
        f"actors.{name}" for name in everything.values["actors"]
    }


def test_a_new_key_is_an_option(judge: Judge) -> None:
    """Each key that the model declares has values, or is what an actor or a trigger of the set has."""
    kinds = {option.path[0] for option in declared()}
    assert kinds >= {"actors", "defaults", "gateway", "notify", "storage", "spark", "triggers", "telemetry", "tools"}
    assert {"actors.*.keep_input", "actors.*.child_ids"} <= judge.options.keys(), "options of capabilities"


def test_each_amount_is_at_its_limits(judge: Judge) -> None:
    """The loader refuses the next value beyond each end, at every entry that may have it."""
    beyond = [
        (option.name, value)
        for option in judge.options.values()
        for value in option.beyond
        if judge.places_of(replace(option, levels=(value,)), {**judge.every_entry, option.name: 1})
    ]
    assert beyond == []
    bounded = [option.name for option in declared() if option.ladder is not None and option.ladder.is_bounded]
    assert [name for name in bounded if len(judge.options[name].beyond) != 2] == []


@pytest.mark.skipif(not FULL, reason="the whole set")
def test_each_pair_of_values_is_in_a_mesh_or_the_loader_refuses_it(pairs: PairwiseMeshes) -> None:
    """A value may be the absence of one. The loader was asked about each pair that is in no mesh, in the least meshes with it."""
    assert pairs.unused == []
    assert set(pairs.left) == pairs.refused.keys()


def test_aws_accepts_each_mesh(meshes: list[Accepted], synthesize: Synthesizer) -> None:
    assert [problem for mesh in meshes for problem in refusals(mesh, synthesize)] == []


def refusals(mesh: Accepted, synthesize: Synthesizer) -> list[str]:
    """Return why AWS would refuse a mesh: what the limit gate says, or what IAM does not know in its policies."""
    started = time.monotonic()
    try:
        found = sorted(set(policies.problems(synthesize(mesh).templates)))
    except (LimitError, MeshFileError, RuntimeError) as error:
        found = [str(error)]
    report(f"{time.monotonic() - started:.1f} s, {len(mesh.levels)} options: {found or 'accepted'}")
    if found:
        report(mesh.text)
    return found


@pytest.mark.skipif(not FULL, reason="cfn-lint takes seconds for each template; `test_clean` has it for three meshes")
def test_cfn_lint_finds_nothing(meshes: list[Accepted], synthesize: Synthesizer, tmp_path: Path) -> None:
    templates = distinct([path for mesh in meshes for path in synthesize(mesh).files])
    command = [str(Path(sys.executable).parent / "cfn-lint"), "--", *map(str, templates)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stdout


def test_everything_may_be_turned_on_and_off(everything: Accepted, nothing: Accepted, synthesize: Synthesizer) -> None:
    assert both_ways(everything, nothing, synthesize) == []


@pytest.mark.skipif(not FULL, reason="sixty meshes")
def test_each_option_may_change(judge: Judge, everything: Accepted, synthesize: Synthesizer) -> None:
    found = [problem for group in changed_options(judge) for problem in of_group(group, judge, everything, synthesize)]
    assert found == []


RISKY = ("actors.*.pause.callback", "notify.email", "storage.kms_key", "gateway.jwt", "actors.*.provisioned")


def test_risky_options_may_change(judge: Judge, everything: Accepted, synthesize: Synthesizer) -> None:
    """Of finding what a change breaks: links, receivers, a key, tokens and an alias. Each alone, so that none hides another."""
    groups = [[(name, 0)] for name in RISKY] if FULL else [[(name, 0) for name in RISKY[:2]]]
    assert [problem for each in groups for problem in of_group(each, judge, everything, synthesize)] == []


Change = tuple[str, int]
"""An option, and its other level; 0 removes it."""
MOVES = ("namespace", "account", "region", "bootstrap_qualifier", "stages", "shards")
"""A mesh with another one of these is another mesh, or in another place."""


def changed_options(judge: Judge) -> Iterator[list[Change]]:
    """Yield groups of changes. Neighbours in the mesh file are in different groups, so that no change hides another."""
    each = [
        (name, level)
        for name, option in judge.options.items()
        for level in range(len(option.levels) + 1)
        if option.levels and option.path[0] not in MOVES
    ]
    groups = -(-len(each) // GROUP)
    yield from (each[start::groups] for start in range(groups))


def of_group(group: list[Change], judge: Judge, everything: Accepted, synthesize: Synthesizer) -> list[str]:
    """Return the problems of a group of changes of the mesh with everything on, each with the change that has it."""
    levels = {name: level for name, level in {**everything.levels, **dict(group)}.items() if level}
    after = judge.accepted(levels)
    found = both_ways(everything, after, synthesize) if after is not None else []
    report(f"{group}: {found or 'may change'}")
    if found and len(group) > 1:
        return [problem for change in group for problem in of_group([change], judge, everything, synthesize)]
    return [f"{group}: {problem}" for problem in found]


def both_ways(one: Accepted, other: Accepted, synthesize: Synthesizer) -> list[str]:
    first, second = synthesize(one).templates, synthesize(other).templates
    return [*changes.problems(first, second), *changes.problems(second, first)]


@pytest.mark.skipif(not FULL, reason="forty meshes")
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_aws_accepts_any_choice(data: st.DataObject, judge: Judge, synthesize: Synthesizer) -> None:
    levels = {name: data.draw(st.integers(0, len(option.levels)), label=name) for name, option in judge.options.items()}
    mesh = judge.accepted({"actors.light": 1, **{name: level for name, level in levels.items() if level}})
    assert mesh is not None
    assert refusals(mesh, synthesize) == []


QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "asya-shop-a"}}


def template(*resources: dict[str, Any], **outputs: str) -> dict[str, Any]:
    named = {f"r{number}": each for number, each in enumerate(resources)}
    exports = {name: {"Value": value, "Export": {"Name": name}} for name, value in outputs.items()}
    return {"Resources": named, "Outputs": exports}


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


IMPORTER = resource("SSM::Parameter", Name="p", Value={"Fn::ImportValue": "Arn"})
EMAIL = resource("SNS::Subscription", TopicArn="t", Protocol="email", Endpoint="a@b.example")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            {"one": template(Arn="x"), "two": template(IMPORTER)},
            {"one": template(), "two": template()},
            "one: the export Arn, which the deployed two imports, vanishes or changes",
        ),
        (
            {"one": template(Arn="x"), "two": template(IMPORTER)},
            {"one": template(Arn="y"), "two": template(IMPORTER)},
            "one: the export Arn, which the deployed two imports, vanishes or changes",
        ),
        (
            {"one": template(resource("DynamoDB::Table", TableName="a"))},
            {"one": template(resource("DynamoDB::Table", TableName="b"))},
            "one/r0: the name of AWS::DynamoDB::Table moves from a to b",
        ),
        (
            {"one": template(resource("S3::Bucket", BucketName="a"))},
            {"one": template()},
            "one/r0: AWS::S3::Bucket is removed",
        ),
        (
            {"one": template(QUEUE, resource("Lambda::Function", FunctionName="asya-shop-a"))},
            {"one": {"Resources": {"r1": resource("Lambda::Function", FunctionName="asya-shop-a")}}},
            "one/r0: AWS::SQS::Queue is removed",
        ),
        (
            {"one": template(QUEUE)},
            {"two": template(QUEUE)},
            "two/r0: AWS::SQS::Queue exists already, as one/r0",
        ),
        (
            {"one": template(EMAIL)},
            {"one": {"Resources": {"r7": EMAIL}}},
            "one/r7: AWS::SNS::Subscription exists already, as one/r0",
        ),
        (
            {"one": template(resource("IAM::ManagedPolicy", ManagedPolicyName="p", Description="a"))},
            {"one": template(resource("IAM::ManagedPolicy", ManagedPolicyName="p", Description="b"))},
            "one/r0: AWS::IAM::ManagedPolicy has a name and needs replacement, because Description changes; "
            "CloudFormation refuses it",
        ),
        (
            {"one": template(resource("SQS::Queue", FifoQueue=True))},
            {"one": template(resource("SQS::Queue"))},
            "one/r0: AWS::SQS::Queue is replaced, because FifoQueue changes",
        ),
    ],
)
def test_a_change_that_cloudformation_refuses_is_found(before: Any, after: Any, problem: str) -> None:
    assert list(changes.problems(before, after)) == [problem]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ({"Action": "sqs:Send", "Resource": "*"}, "sqs:Send is no action of IAM"),
        (
            {"Action": "sqs:SendMessage", "Resource": "*", "Condition": {"StringEquals": {"sqs:Queue": "a"}}},
            "sqs:Queue is a condition key of none of sqs:SendMessage",
        ),
        (
            {"Action": "sqs:SendMessage", "Resource": "arn:aws:sns:r:1:a"},
            "sqs:SendMessage is for none of arn:aws:sns:r:1:a",
        ),
        (
            {
                "Action": "kms:Decrypt",
                "Resource": "*",
                "Principal": {"Service": "events.amazonaws.com"},
                "Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:events:*:*:rule/*"}},
            },
            "events.amazonaws.com sends no aws:SourceArn with kms:Decrypt",
        ),
    ],
)
def test_a_statement_that_iam_does_not_know_is_found(statement: dict[str, Any], problem: str) -> None:
    assert list(policies.statement_problems({"Effect": "Allow", **statement})) == [problem]
