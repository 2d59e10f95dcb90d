"""A whole mesh joins branches by name: a diamond, nested sets, lost branches and their repair (`protocol §9.branches`)."""

from pathlib import Path
from typing import Any

import pytest

from asya.testing import Mesh
from asya.testing.run import Run

MESH = """
namespace: lab
code: handlers
actors:
  study: {handler: lab.study, can_send_to: [statistics, extract, split, model, study, some, report]}
  statistics: {handler: lab.statistics}
  extract: {handler: lab.extract, can_send_to: [embed]}
  embed: {handler: lab.embed}
  split: {handler: lab.split, can_send_to: [statistics]}
  hidden: {handler: lab.model}
  model: {handler: lab.model}
  some: {kind: fan_in, fan_in: {on_failure: partial, quorum: 1}}
  report: {handler: lab.report}
"""
HANDLERS = """
from asya import branches, fan_out

def study(payload):
    yield from branches(payload["ways"], payloads=payload.get("own"), into="/parts", at=payload.get("at", "x-fan-in"))

def statistics(payload):
    return {"mean": sum(payload["rows"]) / len(payload["rows"])}

def extract(payload):
    return payload["rows"][:2]

def embed(rows):
    return [row * 10 for row in rows]

def split(payload):
    yield from fan_out([{"rows": [row]} for row in payload["rows"]], to=["statistics"])

def model(payload):
    return "mended"

def report(payload):
    return payload["parts"]
"""
DIAMOND = {"stats": ["statistics"], "features": ["extract", "embed"]}


@pytest.fixture
def lab(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "lab.py").write_text(HANDLERS)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def study(lab: Mesh, ways: dict[str, list[str]], **more: Any) -> Run:
    return lab.send("study", {"rows": [1, 2, 3], "ways": ways, **more}, then=["report"])


@pytest.mark.rule("9.branches", "9.merge")
def test_a_diamond_is_joined_by_name_in_the_order_of_its_routes(lab: Mesh) -> None:
    run = study(lab, DIAMOND)
    assert list(run.result.items()) == [("stats", {"mean": 2.0}), ("features", [10, 20])]
    assert len(run.children) == 2


@pytest.mark.rule("9.branches", "9.no-items")
def test_an_empty_route_gives_the_payload_and_no_branch_an_empty_object(lab: Mesh) -> None:
    assert study(lab, {"raw": []}, own={"raw": [None, 1.10]}).result == {"raw": [None, 1.10]}
    assert study(lab, {}).result == {}


@pytest.mark.rule("9.nesting", "9.branches")
def test_branches_fan_out_and_branch_again(lab: Mesh) -> None:
    inner = {"rows": [4], "ways": {'ä "b"': ["extract", "embed"], "stats": ["statistics"]}}
    run = study(lab, {"deep": ["study"], "each": ["split"], **DIAMOND}, own={"deep": inner})
    assert run.result["deep"]["parts"] == {'ä "b"': [40], "stats": {"mean": 4.0}}
    assert run.result["each"]["results"] == [{"mean": 1.0}, {"mean": 2.0}, {"mean": 3.0}]
    assert run.result["features"] == [10, 20]


@pytest.mark.rule("9.on_failure.fail", "9.branches")
def test_a_lost_branch_fails_the_origin_and_is_named(lab: Mesh) -> None:
    lab.fail("model", ValueError("no rows"))
    run = study(lab, {**DIAMOND, "model": ["model"]})
    assert run.status == "failed"
    (error,) = (each for each in run.errors if each.id == run.id)
    assert (error.type, error.message) == ("ValueError", f"branch 'model' ({run.children[2].id}) at model: no rows")


@pytest.mark.rule("9.on_failure.partial", "9.branches")
def test_a_lost_branch_is_null_where_the_fan_in_actor_tolerates_it(lab: Mesh) -> None:
    lab.fail("model", ValueError("no rows"))
    run = study(lab, {**DIAMOND, "model": ["model"]}, at="some")
    assert run.result == {"stats": {"mean": 2.0}, "features": [10, 20], "model": None}


@pytest.mark.rule("12.set", "9.branches")
@pytest.mark.parametrize("failed_only", [True, False])
def test_a_repeated_set_keeps_its_names(lab: Mesh, failed_only: bool) -> None:
    lab.fail("model", ValueError("no rows"))
    run = study(lab, {"model": ["model"], **DIAMOND})
    assert lab.replay(run, failed_only=failed_only).result == {
        "model": "mended",
        "stats": {"mean": 2.0},
        "features": [10, 20],
    }


@pytest.mark.rule("1.authority", "9.branches")
@pytest.mark.parametrize("route", [["hidden"], ["extract", "hidden"], ["nobody"]])
def test_a_branch_to_an_actor_that_its_senders_may_not_reach_opens_no_set(lab: Mesh, route: list[str]) -> None:
    run = study(lab, {**DIAMOND, "secret": route})
    assert run.status == "failed"
    assert "RouteMismatch" in {each.type for each in run.errors}
