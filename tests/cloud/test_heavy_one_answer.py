"""One job gives one answer in `asya dev` and on the local cloud; `tests/spark/test_one_answer.py` has the other two ways."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cloud.heavy_bursts import FULL
from tests.cloud.test_dev import Author
from tests.doubles.one_answer import ANSWERS, DATA, MESH, comparable

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cloud.deployed_cloud import DeployedCloud
    from tests.cloud.heavy_cloud import HeavyCloud

SECRETS = "heavy/vault=any\n"
pytestmark = [
    pytest.mark.cloud,
    pytest.mark.slow,
    pytest.mark.skipif(
        not FULL, reason="starts Spark four times (make test-full); tests/spark/test_one_answer.py twice"
    ),
]


def check_answers(cloud: DeployedCloud) -> None:
    for reference, body in DATA.items():
        cloud.mesh.upload(reference, body)
    for actor in ANSWERS:
        envelope = {"id": actor, "payload": {}, "route": {"prev": [], "curr": actor, "next": []}}
        cloud.send_raw(actor, json.dumps(envelope))
    answers = {actor: cloud.wait_for_result(actor)[1]["payload"] for actor in ANSWERS}
    assert {actor: comparable(answer) for actor, answer in answers.items()} == ANSWERS


def test_a_job_of_the_local_cloud(heavy: HeavyCloud) -> None:
    check_answers(heavy.cloud)


def test_a_job_of_dev(tmp_path: Path) -> None:
    shutil.copytree(MESH, tmp_path / "mesh", symlinks=True)
    (tmp_path / "mesh" / ".asya").mkdir()
    (tmp_path / "mesh" / ".asya" / "secrets.env").write_text(SECRETS)
    author = Author(tmp_path / "mesh", {})
    try:
        check_answers(author.cloud)
    finally:
        author.end()
