"""How the suites share the workers: what is dear to set up (a cloud, a Spark session, synthesised templates) is set up once."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer

TOGETHER = ("cloud", "infra", "spark")
"""Suites whose fixtures last for the session: one worker runs all of such a suite."""


def share_of(nodeid: str) -> str:
    """What a test is kept together with: its suite, or else its file."""
    file = PurePosixPath(nodeid.partition("::")[0])
    suite = file.parts[1] if len(file.parts) > 1 else ""
    return suite if suite in TOGETHER else str(file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
    """Share out whole suites and files, the largest first."""
    from xdist.scheduler import LoadScopeScheduling

    class Sharing(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return share_of(nodeid)

    return Sharing(config, log)
