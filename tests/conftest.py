"""How the suites share the workers: what is dear to set up (a cloud, a Spark session, synthesised templates) is set up once."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

WITHOUT_A_CLOUD = "gw2"
"""The last of three workers."""

TOGETHER = ("infra", "spark")
"""Suites whose fixtures last for the session: one worker runs all of such a suite."""

ON_THE_PATHS_MESH = ("crew_failures", "fan_in", "legacy_forms", "paths", "pause", "redrive", "slow_paths")
WITH_A_CLOUD_OF_THEIR_OWN = ("emr_drivers", "emr_stand_in", "local_cloud")
MESHES = ("gateway", "heavy")
"""Of the cloud's suite; all others share the example mesh."""


def share_of(nodeid: str) -> str:
    """What a test is kept together with: a cloud, a suite, or else its file."""
    file = PurePosixPath(nodeid.partition("::")[0])
    suite = file.parts[1] if len(file.parts) > 1 else ""
    subject = file.stem.removeprefix("test_")
    if suite != "cloud" or subject in WITH_A_CLOUD_OF_THEIR_OWN:
        return suite if suite in TOGETHER else str(file)
    if subject in ON_THE_PATHS_MESH:
        return "the paths mesh"
    mesh = subject.partition("_")[0]
    return f"the {mesh} mesh" if mesh in MESHES else "the example mesh"


def only_computes(share: str) -> bool:
    """Whether no cloud is needed for these tests."""
    return not share.startswith(("the ", "tests/cloud/"))


def pytest_configure(config: pytest.Config) -> None:
    """The worker without a cloud uses the time that clouds spend waiting, and no other."""
    if worker_of(config) == WITHOUT_A_CLOUD:
        os.nice(10)


def worker_of(config: pytest.Config) -> str | None:
    """The name of the xdist worker that this process is."""
    given: dict[str, str] = getattr(config, "workerinput", {})
    return given.get("workerid")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
    """Share out whole clouds, suites and files, in the order of the folders: what takes longest comes first.

    Two clouds at once are enough for two cores, and mostly wait. One worker begins with what only computes.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Sharing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return share_of(nodeid)

        def _assign_work_unit(self, node: WorkerController) -> None:
            if node.gateway.id == WITHOUT_A_CLOUD:
                first = next(filter(only_computes, self.workqueue), next(iter(self.workqueue)))
                self.workqueue.move_to_end(first, last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Sharing(config, log)
