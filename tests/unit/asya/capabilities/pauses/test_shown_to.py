"""protocol §11: who sees what a pause shows of the payload, on the test kit."""

import json
from pathlib import Path

import pytest

from asya.tasks.listing import TaskList
from asya.tasks.view import TaskView
from asya.testing import Mesh

MESH = """
namespace: shop
code: handlers
actors:
  bill: {handler: shop.bill}
  approve:
    kind: pause
    pause: {prompt: "Pay {/total}?", show: [/total, /price, /lines]}
  ask: {kind: pause}
  hold: {kind: wait, wait: {for: 1d, deadline: stands}}
"""
HANDLER = """
def bill(payload):
    return {**payload, "total": 3544790567247868102, "lines": ["x" * 1000] * 2000}
"""


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "shop.py").write_text(HANDLER)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


@pytest.mark.rule("11.pause.shows", "11.pause.prompt")
def test_a_payload_behind_a_claim_check_is_shown(mesh: Mesh) -> None:
    question = mesh.send("bill", {}, then=["approve"]).question
    assert question is not None
    assert question.prompt == "Pay 3544790567247868102?"
    assert (question.shown["/total"], question.shown["/price"]) == ("3544790567247868102", None)
    assert len((question.shown["/lines"] or "").encode()) <= 16 * 1024


@pytest.mark.rule("11.pause.shown-to")
def test_lists_have_the_question_alone(mesh: Mesh) -> None:
    mesh.send("bill", {}, then=["approve"])
    (task,) = mesh.ask("GET", "/api/v1/mesh?status=paused", TaskList).items
    assert task.pause is not None
    assert task.pause.prompt == "Pay 3544790567247868102?"
    assert not task.pause.shown


@pytest.mark.rule("11.pause.shown-value")
def test_a_message_keeps_its_digits(mesh: Mesh) -> None:
    route = {"prev": [], "curr": "ask", "next": []}
    body = json.dumps({"id": "m", "route": route, "payload": {"price": 7}}).replace("7", "12345678901234567.89")
    question = mesh.deliver("ask", body).question
    assert question is not None
    assert question.shown == {"/price": "12345678901234567.89"}


@pytest.mark.rule("11.pause.shown-once")
def test_the_values_are_there_until_the_pause_ends(mesh: Mesh) -> None:
    run = mesh.send("ask", {"secret": "s3cr3t"})
    mesh.answer(run, note="ok")
    view: TaskView = mesh.ask("GET", f"/api/v1/mesh/{run.id}", TaskView)
    assert (view.status, view.pause) == ("succeeded", None)


def test_a_wait_shows_nothing(mesh: Mesh) -> None:
    question = mesh.send("hold", {"secret": "s3cr3t"}).question
    assert question is not None
    assert (question.shown, question.prompt.startswith("Goes on at")) == ({}, True)
