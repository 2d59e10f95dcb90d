"""Schedules the suites on the xdist workers, so that each expensive fixture is set up once.

Expensive fixtures are local clouds, Spark sessions and synthesized templates.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.assertion import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

    from tests.used_needs import Notes

# No test downloads an interpreter, and no process that one starts: code runs on those of this machine.
os.environ["UV_PYTHON_DOWNLOADS"] = "never"

NOTES: pytest.StashKey[Notes] = pytest.StashKey()

COMPUTE_WORKERS = ("gw2", "gw3")
"""The workers without a cloud: the last two of four. While the clouds of the first two wait, one would not use both cores."""

SESSION_SUITES = {"capability": "infra", "console": "console", "infra": "infra", "spark": "spark"}
"""Suites with session fixtures, and their groups; one worker runs each group whole.

A suite that synthesizes starts the CDK, which takes longer than a synthesis. So these suites are one group.
"""

MESH_TESTS = {
    "example": ("bad_input", "cli", "demo", "iam_matrix", "readme", "results_index"),
    "gateway": ("attacks", "secrets"),
    "paths": (
        "callback",
        "console",
        "crew_failures",
        "fan_in",
        "legacy_forms",
        "paths",
        "pause",
        "redrive",
        "set_replay",
        "slow_paths",
        "trigger_lanes",
        "trigger_sources",
        "wait",
    ),
}
"""The tests that share the cloud of a mesh, beside `test_gateway_…` and `test_heavy_…`; any other file has a cloud of its own."""
MESH_OF_TEST = {subject: mesh for mesh, subjects in MESH_TESTS.items() for subject in subjects}
OWN_MESHES = ("gateway", "heavy")
"""Meshes whose tests begin with their names."""


def group_of(nodeid: str) -> str:
    """The group that one worker runs: the tests of a cloud, of a suite, or of a file."""
    file = PurePosixPath(nodeid.partition("::")[0])
    suite = file.parts[1] if len(file.parts) > 1 else ""
    subject = file.stem.removeprefix("test_")
    if suite != "cloud":
        return SESSION_SUITES.get(suite, str(file))
    first = subject.partition("_")[0]
    mesh = MESH_OF_TEST.get(subject, first if first in OWN_MESHES else None)
    return f"the {mesh} mesh" if mesh is not None else str(file)


def needs_no_cloud(group: str) -> bool:
    """Returns whether the tests of a group run without a cloud."""
    return not group.startswith(("the ", "tests/cloud/"))


def first_for(worker: str, groups: Iterable[str]) -> str:
    """The group that a worker takes next: the first one of its kind, else the first one."""
    left = list(groups)
    return next((group for group in left if needs_no_cloud(group) == (worker in COMPUTE_WORKERS)), left[0])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the folder of the notes on needs; see `tests.used_needs`."""
    parser.addoption("--used-needs", metavar="FOLDER", help="note here which needs of manifests calls make use of")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Writes the notes on needs of this process."""
    if (notes := config.stash.get(NOTES, None)) is not None:
        notes.write(Path(config.getoption("--used-needs")))


def pytest_configure(config: pytest.Config) -> None:
    """Lowers the priority of the workers without a cloud, and starts the notes on needs if they are asked for.

    Clouds mostly wait, and these workers use that time. A step of 4 leaves each more than a quarter of a core beside a process
    that is always busy; with 10 it starves there.
    """
    if worker_id(config) in COMPUTE_WORKERS:
        os.nice(4)
    if config.getoption("--used-needs"):
        from tests import used_needs

        config.stash[NOTES] = used_needs.start()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Collects without Python's garbage collector, which would search the syntax trees of all modules again and again.

    What the collection has left lives as long as the process, so later searches leave it out.
    """
    gc.disable()
    try:
        if (number := worker_number(session.config)) is not None and not sys.dont_write_bytecode:
            rewrite_assertions(session.config, *number)
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def rewrite_assertions(config: pytest.Config, number: int, count: int) -> None:
    """Fills pytest's cache of test modules: each worker begins elsewhere, so that they share work that each would do alone.

    In a fresh clone the cache takes 15 seconds of one core, and afterwards nothing.
    """
    state = config.stash[rewrite.assertstate_key]
    given = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    files = sorted({file for path in given for file in (path.rglob("test_*.py") if path.is_dir() else [path])})
    first = len(files) * number // count
    for file in files[first:] + files[:first]:
        folder = rewrite.get_cache_dir(file)
        cached = folder / (file.name[:-3] + rewrite.PYC_TAIL)
        if not cached.exists() and rewrite.try_makedirs(folder):
            source_hash, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(state, code, source_hash, cached)


def worker_number(config: pytest.Config) -> tuple[int, int] | None:
    """The number of this xdist worker, from 0, and how many there are; None for a process without others."""
    worker_input: dict[str, Any] = getattr(config, "workerinput", {})
    return (int(worker_input["workerid"][2:]), worker_input["workercount"]) if worker_input else None


def worker_id(config: pytest.Config) -> str | None:
    """The id of the xdist worker that runs this process, such as `gw0`."""
    worker_input: dict[str, str] = getattr(config, "workerinput", {})
    return worker_input.get("workerid")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
    """Schedules whole groups in the order of the folders, which puts the longest group first.

    Two clouds at once are enough for two cores. Their workers start with the tests that need one, so that no cloud is left to wait
    for when the others are done. The workers without a cloud start with the tests that need none.
    """
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

        def _assign_work_unit(self, node: WorkerController) -> None:
            self.workqueue.move_to_end(first_for(node.gateway.id, self.workqueue), last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return GroupScheduling(config, log)
