"""Tests callbacks (protocol §11) on the deployed mesh: an open call answers a pause once, by a link that KMS has signed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.cloud.callers import anonymous
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.paths_mesh import NewEnvelope, send, wait_for_final_state

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.cloud


def wait_for_link(cloud: DeployedCloud, envelope_id: str) -> str:
    """Waits until the task is paused, and returns the link that answers it, at an address that this machine resolves."""

    def poll() -> str | None:
        task = cloud.task(envelope_id)
        return str(task.pause.callback) if task is not None and task.pause is not None else None

    path, _, token = until(poll, f"{envelope_id} to pause").rpartition("?token=")
    assert path.endswith("/callbacks")
    return f"{anonymous(cloud).url}/callbacks?token={token}"


def follow(link: str, form: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Follows a link as a browser does, without a signature; with a form it sends it."""
    request = Request(link, data=urlencode(form).encode() if form is not None else None)
    try:
        with urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


@pytest.mark.rule("11.callback.get", "11.callback.post", "11.callback.open", "11.callback.shows")
def test_a_link_answers_a_pause_once(paths: DeployedCloud) -> None:
    task_id = send(paths, NewEnvelope(["sign-off", "helper"], {"report": {"pages": 3}, "total": 3544790567247868102}))
    link = wait_for_link(paths, task_id)
    status, page = follow(link)
    assert (status, "<h1>Sign off?</h1>" in page) == (200, True)
    assert ">\n3544790567247868102</pre>" in page
    assert "{&quot;pages&quot;: 3}</pre>" in page
    assert follow(link[:-1] + ("A" if link[-1] != "A" else "B"))[0] == 404
    assert follow(link, {"approved": "perhaps"})[0] == 422
    assert wait_for_link(paths, task_id) == link
    assert follow(link, {"approved": "true"})[0] == 200
    end = wait_for_final_state(paths, task_id)
    assert (end.task.status, end.payload["approved"]) == ("succeeded", True)
    assert follow(link, {"approved": "false"})[0] == 409
