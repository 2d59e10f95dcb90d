"""protocol §11: callbacks over the gateway, from the pause to the next hop."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes
from asya.gateway.callbacks.page import HEADERS
from asya.senders.aws.token_keys import TokenKeyError, TokenKeys
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.task_store import TaskStoreError
from asya.testing import Mesh, RefusedError, Run
from asya.testing.api import USER_ID
from asya.testing.deployment import TEST_USER
from asya.testing.services.gateway import URL

MESH = """
namespace: news
code: handlers
actors:
  approve:
    kind: pause
    pause:
      prompt: Publish it?
      callback: true
      fields:
        - {name: approved, type: boolean}
        - {name: title, type: string, payload_key: /report/title, required: false}
  publish: {handler: news.publish}
"""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


def mesh_of(folder: Path, text: str) -> Mesh:
    (folder / "handlers").mkdir()
    (folder / "handlers" / "news.py").write_text("def publish(payload):\n    return {**payload, 'published': True}\n")
    (folder / "mesh.yaml").write_text(text)
    return Mesh(folder / "mesh.yaml")


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    return mesh_of(tmp_path, MESH)


@pytest.fixture
def run(mesh: Mesh) -> Run:
    return mesh.send("approve", {"secret": "s3cr3t"}, then=["publish"])


def link_of(run: Run) -> str:
    assert run.question is not None
    assert run.question.callback is not None
    return run.question.callback


def call(mesh: Mesh, method: str, link: str, body: bytes = b"", **headers: str) -> tuple[int, str, Mapping[str, str]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer: Any = mesh.cloud.request(method, link.removeprefix(URL), body, named, user_arn="", user_id="")
    return answer["statusCode"], answer.get("body") or "", answer["headers"]


@pytest.mark.rule("11.callback.get")
def test_a_get_shows_the_question_and_changes_nothing(mesh: Mesh, run: Run) -> None:
    link = link_of(run)
    for _ in range(3):
        status, page, headers = call(mesh, "GET", link)
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "<h1>Publish it?</h1>" in page
    status, content, _ = call(mesh, "GET", link, accept=JSON)
    assert (status, json.loads(content)["prompt"]) == (200, "Publish it?")
    mesh.travel(minutes=2)
    assert run.status == "paused"


@pytest.mark.rule("11.callback.shows")
def test_the_holder_of_a_link_sees_the_payload(mesh: Mesh) -> None:
    payload = {
        "total": 3544790567247868102,
        "price": 1,
        "customer": "<img src=x onerror=alert(1)>",
        "note": "n" * 9_000,
    }
    body = json.dumps(payload).replace('"price": 1', '"price": 12345678901234567.89').encode()
    run = mesh.send("approve", json.loads(body), then=["publish"])
    status, page, _ = call(mesh, "GET", link_of(run))
    assert status == 200
    for text in (">\n3544790567247868102<", "&lt;img src=x onerror=alert(1)&gt;", "shortened: the payload has more"):
        assert text in page
    assert "<img" not in page
    assert link_of(run).partition("token=")[2] not in page
    status, content, _ = call(mesh, "GET", link_of(run), accept=JSON)
    assert json.loads(content)["shown"][0] == {"pointer": "/total", "text": "3544790567247868102", "type": "number"}
    assert call(mesh, "POST", link_of(run), b"approved=perhaps", content_type=FORM)[1].count("3544790567247868102") == 1


@pytest.mark.rule("11.callback.shows")
def test_a_page_shows_what_the_actor_names(tmp_path: Path) -> None:
    text = MESH.replace(
        "prompt: Publish it?", 'prompt: "Pay {/total} for {/nobody}?"\n      show: [/uri, /nobody, /key]'
    )
    mesh = mesh_of(tmp_path, text)
    payload = {"total": 12, "secret": "s3cr3t", "uri": "https://data.example/r?a=1&b=2", "key": "s3://reports/a.csv"}
    _, page, headers = call(mesh, "GET", link_of(mesh.send("approve", payload, then=["publish"])))
    assert "<h1>Pay 12 for (missing)?</h1>" in page
    assert '<a href="https://data.example/r?a=1&amp;b=2" target="_blank" rel="noopener noreferrer nofollow">' in page
    assert '<span class="quiet">missing</span>' in page
    assert ("s3://reports/a.csv" in page, 'href="s3:' in page, "s3cr3t" in page) == (True, False, False)
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.rule("11.callback.post")
def test_a_form_resumes_once(mesh: Mesh, run: Run) -> None:
    link = link_of(run)
    status, page, _ = call(mesh, "POST", link, b"approved=true&title=Late", content_type=FORM)
    assert (status, "the task goes on" in page) == (200, True)
    mesh.travel(minutes=1)
    assert run.result == {"secret": "s3cr3t", "approved": True, "report": {"title": "Late"}, "published": True}
    for method in ("GET", "POST"):
        assert call(mesh, method, link, b"approved=false", content_type=FORM)[0] == 409
    assert run.result["approved"]


@pytest.mark.rule("11.callback.post")
def test_json_resumes_and_is_answered_in_json(mesh: Mesh, run: Run) -> None:
    body = json.dumps({"input": {"approved": False}}).encode()
    status, content, _ = call(mesh, "POST", link_of(run), body, content_type=JSON)
    assert (status, json.loads(content)) == (200, {"id": run.id, "status": "running"})
    with pytest.raises(RefusedError, match="no longer paused"):
        mesh.answer(run, approved=True)


@pytest.mark.rule("11.callback.post")
def test_wrong_answers_leave_the_task_paused(mesh: Mesh, run: Run) -> None:
    link = link_of(run)
    status, page, _ = call(mesh, "POST", link, b"approved=perhaps", content_type=FORM)
    assert (status, "should be true or false" in page) == (422, True)
    status, content, _ = call(mesh, "POST", link, b'{"input": {"other": 1}}', content_type=JSON)
    assert (status, {field["name"] for field in json.loads(content)["error"]["fields"]}) == (422, {"other", "approved"})
    for body in (b"{", b"[1]", b'{"answers": {}}'):
        assert call(mesh, "POST", link, body, content_type=JSON)[0] == 400
    assert call(mesh, "POST", link, b"x" * 200_000, content_type=FORM)[0] == 413
    assert call(mesh, "POST", link, b"approved=true&title=" + b"\x01" * 100_000, content_type=FORM)[0] == 413
    assert run.status == "paused"


@pytest.mark.rule("11.callback.leaks")
def test_a_pause_whose_envelope_is_gone_names_no_task(mesh: Mesh, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    link = link_of(run)
    monkeypatch.setattr(PausedEnvelopes, "load", lambda *_: None)
    status, content, _ = call(mesh, "POST", link, b'{"input": {"approved": true}}', content_type=JSON)
    assert (status, run.id in content) == (409, False)


@pytest.mark.rule("11.callback.leaks")
def test_a_page_that_shows_nothing_has_the_question_alone(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path, MESH.replace("callback: true", "callback: true\n      show: []"))
    run = mesh.send("approve", {"report": ["s3cr3t"]}, then=["publish"])
    link, answers = link_of(run), []
    answers.append(call(mesh, "GET", link))
    # The title has no place in this payload.
    answers.append(call(mesh, "POST", link, b"approved=true&title=Late", content_type=FORM))
    answers.append(call(mesh, "POST", link, b'{"input": {"approved": 1}}', content_type=JSON))
    assert [status for status, _, _ in answers] == [200, 422, 422]
    assert "cannot be put into the payload</p>" in answers[1][1]
    answers.append(call(mesh, "GET", link[:-4]))
    mesh.cancel(run)
    answers.append(call(mesh, "GET", link))
    for _, body, headers in answers:
        assert not any(word in body for word in ("s3cr3t", run.id, "list of", "news", "canceled"))
        assert HEADERS.items() <= headers.items()


@pytest.mark.rule("11.callback.leaks", "11.callback.token")
def test_every_other_token_gives_the_same_404(mesh: Mesh, run: Run) -> None:
    link = link_of(run)
    wrong = [link[:-1], f"{link[:-43]}{'A' * 43}", URL + "/callbacks?token=x", URL + "/callbacks"]
    assert len({call(mesh, "GET", each)[:2] for each in wrong}) == 1
    assert call(mesh, "GET", wrong[0])[0] == 404
    mesh.cloud.advance(29.1 * 86_400)
    assert call(mesh, "GET", link)[:2] == call(mesh, "GET", wrong[0])[:2]


@pytest.mark.rule("11.callback.link")
def test_lists_and_streams_leave_the_link_out(mesh: Mesh, run: Run) -> None:
    link = link_of(run)
    assert link in json.dumps(mesh.ask("GET", f"/api/v1/mesh/{run.id}", dict))
    assert "token" not in json.dumps(mesh.ask("GET", "/api/v1/mesh", dict))
    path = f"/api/v1/mesh/{run.id}/events"
    answer = mesh.cloud.request("GET", path, b"", {}, user_arn=TEST_USER, user_id=USER_ID)
    assert "Publish it?" in str(answer)
    assert "callbacks" not in str(answer)
    kept = [body for key, body in mesh.objects.items() if key.startswith("paused/")]
    assert kept
    assert not any(b"callbacks?token" in body for body in kept)


@pytest.mark.rule("11.callback.post")
def test_a_link_answers_its_own_pause_alone(mesh: Mesh) -> None:
    run = mesh.send("approve", {}, then=["approve", "publish"])
    first = link_of(run)
    mesh.call_back(run, approved=True)
    second = link_of(run)
    assert first != second
    assert call(mesh, "POST", first, b"approved=true", content_type=FORM)[0] == 409
    assert run.status == "paused"
    assert mesh.call_back(run, approved=False).status == "succeeded"


@pytest.mark.rule("11.callback.post")
def test_a_link_answers_no_pause_that_came_meanwhile(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call reads the first pause; before it writes, another answer has led the task into its second one."""
    run = mesh.send("approve", {}, then=["approve", "publish"])
    first, reads, real = link_of(run), list[Any](), DynamoTaskStore.records

    def keep(*args: Any, **more: Any) -> Any:
        reads.append(real(*args, **more))
        return reads[-1]

    with monkeypatch.context() as patch:
        patch.setattr(DynamoTaskStore, "records", keep)
        assert call(mesh, "GET", first)[0] == 200
    mesh.call_back(run, approved=True)
    with monkeypatch.context() as patch:
        patch.setattr(DynamoTaskStore, "records", lambda *args, **more: reads.pop() if reads else real(*args, **more))
        assert call(mesh, "POST", first, b"approved=true", content_type=FORM)[0] == 409
    assert (reads, run.status) == ([], "paused")


def test_an_outage_is_no_refusal(mesh: Mesh, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: object, **__: object) -> None:
        raise TaskStoreError("throttled")

    def silent(*_: object) -> None:
        raise TokenKeyError("no answer")

    link = link_of(run)
    with monkeypatch.context() as broken:
        broken.setattr(DynamoTaskStore, "records", unavailable)
        assert call(mesh, "GET", link)[0] == 503
    with monkeypatch.context() as broken:
        broken.setattr(TokenKeys, "get", silent)
        assert call(mesh, "GET", link)[0] == 503
    assert call(mesh, "GET", link)[0] == 200


@pytest.mark.rule("11.callback.open")
def test_a_mesh_without_links_has_no_such_call(mesh: Mesh, tmp_path: Path) -> None:
    (tmp_path / "mesh.yaml").write_text(MESH.replace("callback: true", "callback: false"))
    plain = Mesh(tmp_path / "mesh.yaml")
    run = plain.send("approve", {}, then=["publish"])
    assert run.question is not None
    assert run.question.callback is None
    # No open route leads there, so API Gateway asks for a signature.
    assert call(plain, "GET", URL + "/callbacks?token=x")[0] == 403


@pytest.mark.rule("11.callback.payload")
def test_only_a_callback_key_puts_the_link_into_the_payload(tmp_path: Path, mesh: Mesh) -> None:
    (tmp_path / "mesh.yaml").write_text(MESH.replace("callback: true", "callback: true\n      callback_key: /links/go"))
    linked = Mesh(tmp_path / "mesh.yaml")
    run = linked.send("approve", {}, then=["publish"])
    link = link_of(run)
    assert linked.answer(run, approved=True).result["links"] == {"go": link}
    refused = linked.send("approve", {"links": 1}, then=["publish"])
    assert "no place for the link that answers it" in refused.errors[0].message
