"""How the suites share the workers: what is dear to set up (a cloud, a Spark session, synthesised templates) is set up once."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer

TOGETHER = ("infra", "spark")
"""Suites whose fixtures last for the session: one worker runs all of such a suite."""

ON_THE_PATHS_MESH = ("crew_failures", "fan_in", "older_forms", "paths", "pause", "redrive")
WITH_A_CLOUD_OF_THEIR_OWN = ("emr_drivers", "emr_stand_in", "heavy_deaths", "heavy_scale", "local_cloud")
"""Of the cloud's suite; all others share the example mesh."""


def share_of(nodeid: str) -> str:
    """What a test is kept together with: a cloud, a suite, or else its file."""
    file = PurePosixPath(nodeid.partition("::")[0])
    suite = file.parts[1] if len(file.parts) > 1 else ""
    subject = file.stem.removeprefix("test_")
    if suite == "cloud" and subject not in WITH_A_CLOUD_OF_THEIR_OWN:
        if subject.startswith("gateway"):
            return "the gateway mesh"
        return "the paths mesh" if subject in ON_THE_PATHS_MESH else "the example mesh"
    return suite if suite in TOGETHER else str(file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
    """Share out whole clouds, suites and files, in the order of the folders: what takes longest comes first."""
    from xdist.scheduler import LoadScopeScheduling

    class Sharing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return share_of(nodeid)

    config.option.loadscopereorder = False
    return Sharing(config, log)
