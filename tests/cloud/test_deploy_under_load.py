"""A deployment under load loses nothing: envelopes are in flight while new code and a new mesh file are deployed.

While `up` deploys, the light actor `enter` is always busy, two job runs of the heavy actor `square` are at work, and further
envelopes are pending. The new version changes the code of all actors, their limits and retries, and adds an actor to the end
of the route.

On AWS the versions overlap for longer, because stacks take minutes. docs/reference/local-cloud.md lists what differs.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from asya.client.connection import read_local
from asya.client.mesh_client import MeshClient
from asya.protocol import names
from asya_local.cloud import UpOptions, down, up
from asya_local.emr.settings import WorkerSettings
from asya_local.steps import Steps
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.heavy_bursts import FULL
from tests.cloud.heavy_cloud import HeavyCloud
from tests.cloud.versioned_mesh import VersionedMesh, expected_payload, message_counts, results, task_states

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.skipif(not FULL, reason="takes minutes (make test-full); its rules have unit tests"),
]

COUNT = 2000
IDS = [f"deploy-{number:04d}" for number in range(COUNT)]
BEFORE, DURING, AFTER = IDS[: COUNT * 17 // 20], IDS[COUNT * 17 // 20 : COUNT * 19 // 20], IDS[COUNT * 19 // 20 :]
"""The envelopes that are sent before, while and after the new version is deployed."""
CHUNK = len(DURING) // 20
CHUNK_SECONDS = 2.0
"""The size of a part of `DURING`, and how long `enter` needs for it."""
RUN_SIZE = COUNT // 10
FREE_RUNS, HELD_RUNS = 2, 2
"""The first job runs pass the gate; the next ones are at work during the deployment, as many as the mesh allows at once."""
OPTIONS = UpOptions(workers=WorkerSettings(at_once=HELD_RUNS, cores=1, reuse=True))
END_SECONDS = 1200.0
"""How long the envelopes may take to end after the deployment; enough for a slow machine."""


@pytest.fixture
def versions(tmp_path: Path) -> VersionedMesh:
    mesh = VersionedMesh(tmp_path / "mesh")
    mesh.write_first_version(RUN_SIZE)
    return mesh


@pytest.fixture
def deployed(versions: VersionedMesh, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeavyCloud]:
    """The first version of the mesh on a local cloud of its own."""
    state = tmp_path_factory.mktemp("deploys")
    try:
        up(versions.file, state, OPTIONS)
        yield HeavyCloud(DeployedCloud(MeshClient(read_local(state)), state))
    finally:
        down(state)


def send(mesh: HeavyCloud, ids: Iterable[str], *, seconds: float = 0) -> None:
    """Sends envelopes in batches; `seconds` is the time that `enter` needs for each."""
    payloads = {name: {"n": IDS.index(name), "seconds": seconds} for name in ids}
    mesh.send_all(payloads, "enter", "square", "leave")


def waiting_runs(mesh: HeavyCloud) -> set[str]:
    """The runs that wait at the gate; the first runs pass it."""
    running = [run for run in mesh.runs("square") if run["state"] == "RUNNING"]
    return {run["id"] for run in running if int(run["name"].rpartition(".")[2]) > FREE_RUNS}


def is_under_load(mesh: HeavyCloud) -> bool:
    """Whether some envelopes have ended, and all following runs that may be at work wait at the gate."""
    return len(waiting_runs(mesh)) == HELD_RUNS and ended_count(mesh) > 0


def ended_count(mesh: HeavyCloud) -> int:
    return len(mesh.end_counts("deploy-"))


def deploy_under_load(mesh: HeavyCloud, versions: VersionedMesh) -> list[str]:
    """Deploys the second version, and keeps `enter` busy meanwhile; returns the ids that it has not sent."""
    left = list(DURING)
    queue = names.queue_name(mesh.namespace, "enter")
    completed_steps: list[str] = []
    versions.write_second_version()
    with ThreadPoolExecutor(1) as executor:
        steps = Steps(lambda step: completed_steps.append(step.name))
        deployment = executor.submit(up, versions.file, mesh.cloud.state, OPTIONS, steps)
        until(lambda: "cdk synth" in completed_steps or deployment.done() or None, "the templates")
        while left and not deployment.done():
            send(mesh, left[:CHUNK], seconds=CHUNK_SECONDS / CHUNK)
            del left[:CHUNK]
            until(lambda: deployment.done() or mesh.cloud.message_count(queue) <= CHUNK or None, "free workers")
        deployment.result()
    return left


def test_a_deployment_under_load_loses_nothing(deployed: HeavyCloud, versions: VersionedMesh) -> None:
    """All envelopes end once, whatever version of each actor they meet.

    A call or a job run that is at work during the deployment ends with the code that it started with. Calls and runs that
    start after the deployment have the new code.
    """
    send(deployed, BEFORE)
    until(lambda: is_under_load(deployed) or None, "some envelopes to end, and the following runs to wait")
    waiting = waiting_runs(deployed)

    left = deploy_under_load(deployed, versions)

    assert waiting_runs(deployed) == waiting
    assert 0 < ended_count(deployed) < COUNT / 2
    versions.open_gate()
    send(deployed, [*left, *AFTER])
    until(lambda: ended_count(deployed) == COUNT or None, f"{COUNT} envelopes to end", END_SECONDS)
    until(lambda: not message_counts(deployed) or None, "all queues to be empty")

    # Each envelope has one end.
    payloads = results(deployed)
    assert deployed.end_counts("") == dict.fromkeys(IDS, 1)
    assert {name: payload["n"] for name, payload in payloads.items()} == {name: n for n, name in enumerate(IDS)}
    assert task_states(deployed) == dict.fromkeys(IDS, ("succeeded", 0))

    # Both versions of each actor took part, and each result is that of its versions.
    assert payloads == {name: expected_payload(payload) for name, payload in payloads.items()}
    for actor in ("entered", "squared", "left"):
        assert {payload[actor] for payload in payloads.values()} == {1, 2}
        assert {payloads[name][actor] for name in AFTER} == {2}
    versions_of_runs = defaultdict(set)
    for payload in payloads.values():
        versions_of_runs[payload["run"]].add(payload["squared"])
    assert all(len(versions_of_run) == 1 for versions_of_run in versions_of_runs.values()), versions_of_runs
    assert {run["state"] for run in deployed.runs("square")} == {"SUCCESS"}

    # No message was received twice, so no call was interrupted. A replaced process may take its last log lines with it.
    retried = sum(payload["n"] % 10 == 0 for payload in payloads.values())
    extra = sum(payload["left"] == 2 for payload in payloads.values())
    expected = {"enter": COUNT, "square": COUNT, "leave": COUNT + retried, "extra": extra, "x-sink": COUNT}
    received = {actor: deployed.received_count(actor) for actor in expected}
    assert {actor: count for actor, count in received.items() if count > expected[actor]} == {}
    assert deployed.retained() == []
