"""Stages: values over those of the base, with their own lines in messages."""

import json

import pytest

from asya_infra.mesh_file import MeshFileError
from asya_infra.mesh_file.schema import schema_text
from tests.unit.asya_infra.mesh_file.loading import load, problems_of

BASE = """
namespace: shop
tags: {team: data, cost: low}
operators: ["arn:aws:iam::1:role/a", "arn:aws:iam::1:role/b"]
defaults: {timeout: 20s, concurrency: 10}
actors:
  score: {handler: shop.one, memory: 256, env: {MODE: test, LEVEL: info}}
  count: {spark: {job: heavy.crunch, executors: {max: 2}}}
stages:
  dev: {}
  prod:
    account: 123456789012
    region: eu-central-1
    tags: {cost: high}
    operators: ["arn:aws:iam::1:role/c"]
    defaults: {concurrency: 200}
    storage: {retention: {tasks: 90d}}
    actors:
      score: {memory: 1g, env: {MODE: live}}
      count: {spark: {executors: {max: 8}}}
    spark: {application: {max_vcpu: 64}}
"""


pytestmark = pytest.mark.usefixtures("folder")


def problems(stages: str, stage: str = "prod", more: str = "max_hops: 9") -> list[str]:
    """Return the problems of a mesh with these stages, which begin in line 5."""
    text = f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\n{more}\nstages:\n"
    return problems_of(text + "".join(f"  {line}\n" for line in stages.splitlines()), stage)


def test_a_stage_overrides_the_base() -> None:
    loaded = load(BASE, "prod")
    mesh = loaded.mesh
    assert loaded.namespace == "shop-prod"
    assert (mesh.account, mesh.region) == ("123456789012", "eu-central-1")
    assert mesh.tags == {"team": "data", "cost": "high"}
    assert mesh.operators == ("arn:aws:iam::1:role/c",)
    assert mesh.storage.retention.tasks == 90 * 86400
    assert mesh.storage.retention.runs == 14 * 86400
    score, count = mesh.actors["score"], mesh.actors["count"]
    assert (score.memory, score.timeout, score.concurrency) == (1024, 20.0, 200)
    assert score.env == {"MODE": "live", "LEVEL": "info"}
    assert count.spark is not None
    assert (count.spark.job, count.spark.executors.max) == ("heavy.crunch", 8)


@pytest.mark.parametrize("stage", ["", "dev"])
def test_other_stages_keep_the_base(stage: str) -> None:
    mesh = load(BASE, stage).mesh
    assert mesh.account is None
    assert mesh.tags == {"team": "data", "cost": "low"}
    assert mesh.actors["score"].memory == 256


def test_an_undeclared_stage_is_refused() -> None:
    with pytest.raises(MeshFileError) as caught:
        load(BASE, "prd")
    assert str(caught.value) == (
        "mesh.yaml:8: stages: there is no stage 'prd'; declared: dev, prod; did you mean 'prod'?"
    )


def test_without_stages_every_stage_is_a_copy() -> None:
    assert load("namespace: shop\nactors: {a: {handler: shop.one}}\n", "mine").namespace == "shop-mine"


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        ("prod: {memory: 3}", "6: stages.prod.memory: unknown key"),
        ("prod: {storag: {}}", "6: stages.prod.storag: unknown key; did you mean 'storage'?"),
        ("prod: {namespace: other}", "6: stages.prod.namespace: is the same in every stage; set it at the top of the file"),
        ("prod: {code: src}", "6: stages.prod.code: is the same in every stage; set it at the top of the file"),
        ("prod: {stages: {}}", "6: stages.prod.stages: is the same in every stage; set it at the top of the file"),
        ("prod:\n  max_hops: many", "7: stages.prod.max_hops: should be a whole number; got 'many'"),
        ("prod:\n  account: 123", "7: stages.prod.account: should be the 12 digits of an AWS account; got '123'"),
        ("prod:\n  region: Europe", "7: stages.prod.region: should be an AWS region such as eu-central-1; got 'Europe'"),
        (
            "prod:\n  actors:\n    b: {memory: 256}",
            "8: stages.prod.actors.b: there is no actor 'b' to override; add it to the actors of the file",
        ),
        ("prod:\n  actors:\n    a:\n      memory: 1", "9: stages.prod.actors.a.memory: should be at least 128; got 1"),
        ("prod:\n  actors:\n    a:", "8: stages.prod.actors.a: should be a mapping; got nothing"),
        ("prod:\n  defaults:\n    memory: 1", "8: stages.prod.defaults.memory: should be at least 128; got 1"),
        ("prod:\n  gateway:\n    jwt: {audience: us}", "8: stages.prod.gateway.jwt.issuer: missing"),
        (
            "prod:\n  actors:\n    a: {handler: shop.two}",
            "8: stages.prod.actors.a.handler: functions/handlers/shop.py has no 'two'",
        ),
        (
            "prod: {}\nPROD: {}",
            "7: stages.PROD: stage name 'PROD' is not a DNS label: lower-case letters, digits and inner hyphens only",
        ),
        ("prod:", "6: stages.prod: should be a mapping; got nothing"),
        ("- prod", "6: stages: should be a mapping; got a list"),
        ("prod: {}\nprod: {}", "7: stages.prod: duplicate key, first in line 6; keep one of them"),
    ],
)  # fmt: skip
def test_messages_have_the_line_of_the_stage(stages: str, problem: str) -> None:
    assert problem in [line.replace("5: stages: should", "6: stages: should") for line in problems(stages)]


def test_each_problem_is_told_once() -> None:
    assert problems("prod: {max_hops: 0}\ndev: {}", more="defaults: {memory: 1}") == [
        "4: defaults.memory: should be at least 128; got 1",
        "6: stages.prod.max_hops: should be at least 1; got 0",
    ]


@pytest.mark.parametrize("selected", ["", "dev"])
def test_stages_that_are_not_selected_are_validated_too(selected: str) -> None:
    assert problems("dev: {}\nprod: {max_hops: 0}", selected) == [
        "7: stages.prod.max_hops: should be at least 1; got 0"
    ]


@pytest.mark.parametrize("stage", ["", "prod"])
def test_a_value_of_the_base_that_does_not_fit_the_stage(stage: str) -> None:
    text = "namespace: shop\nactors:\n  b:\n    spark: {job: heavy.crunch, executors: {cores: 2}}\n"
    text += "stages: {prod: {spark: {application: {max_vcpu: 2}}}}\n"
    with pytest.raises(MeshFileError) as caught:
        load(text, stage)
    (problem,) = map(str, caught.value.problems)
    assert problem == (
        "mesh.yaml:4: actors.b.spark.executors: a job run needs 3 vCPU to start, but the application has 2 "
        "(spark.application.max_vcpu) (in the stage 'prod')"
    )


def test_a_list_that_a_stage_replaces() -> None:
    """Also where the list of the file has the missing key."""
    base = "  b: {handler: shop.one, access: [{secret: key, read: true}]}"
    assert problems("prod:\n  actors:\n    b: {access: [{read: true}]}", more=base) == [
        "8: stages.prod.actors.b.access[0]: has no resource; an entry needs exactly one of bucket, table, database, secret and "
        "statement"
    ]
    assert problems("prod:\n  tools:\n    t: {route: [c]}", more=f"{base}\ntools: {{t: {{route: [a, b]}}}}") == [
        "9: stages.prod.tools.t.route[0]: there is no actor 'c'"
    ]
    statement = base.replace("secret: key, read: true", "statement: {Action: a, Resource: r}")
    statement = base.replace("secret: key, read: true", "statement: {Action: a, Resource: r}")
    found = problems("prod:\n  actors:\n    b: {access: [{statement: {Action: a}}]}", more=statement)
    assert "8: stages.prod.actors.b.access[0].statement.Resource: missing" in found


def test_a_conflict_with_a_legacy_form() -> None:
    (problem,) = problems("prod: {crew: {x-sink: {memory: 2g}}}", more="happy-end: {memory: 1g}")
    assert problem == "4: happy-end.memory: is 1g, but crew.x-sink.memory is 2g; keep one of them (in the stage 'prod')"


def test_the_schema_requires_nothing_of_a_stage() -> None:
    schema = json.loads(schema_text())
    stage = schema["$defs"]["Stage"]
    assert schema["properties"]["stages"]["additionalProperties"] == {"$ref": "#/$defs/Stage"}
    assert not {"namespace", "code", "jobs", "stages"} & stage["properties"].keys()
    assert stage["properties"]["actors"]["additionalProperties"] == {"$ref": "#/$defs/StageActorSection"}
    assert "job" in schema["$defs"]["StageSparkSection"]["properties"]
    assert not [name for name, section in schema["$defs"].items() if name.startswith("Stage") and "required" in section]
    assert "required" in schema["$defs"]["SparkSection"]


@pytest.mark.parametrize(
    ("defaults", "own"), [("concurrency: 20", "pollers: {max: 9}"), ("pollers: {max: 9}", "concurrency: 20")]
)
def test_an_actor_gets_no_default_that_excludes_its_own_value(defaults: str, own: str) -> None:
    base = f"namespace: shop\ndefaults: {{{defaults}}}\nactors:\n  a: {{handler: shop.one}}\n  b: {{handler: shop.one"
    for text, stage in (
        (f"{base}, {own}}}\n", ""),
        (f"{base}}}\nstages: {{prod: {{actors: {{b: {{{own}}}}}}}}}\n", "prod"),
    ):
        actors = load(text, stage).mesh.actors
        assert {name: actor.pollers is not None for name, actor in actors.items()} == {
            "a": defaults.startswith("pollers"),
            "b": own.startswith("pollers"),
        }
