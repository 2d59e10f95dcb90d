"""The test kit: a mesh works in any thread, and inside a running event loop."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from asya.testing import Mesh, TestKitError
from asya.testing.services.scheduler import Scheduler

MESH = """
namespace: shop
code: handlers
actors:
  plain: {handler: handlers_of_loops.plain}
  coroutine: {handler: handlers_of_loops.coroutine}
  frames: {handler: handlers_of_loops.frames}
  own: {handler: handlers_of_loops.own_loop}
  endless: {handler: handlers_of_loops.endless, timeout: 1s}
tools:
  all: {description: All of them, route: [plain, coroutine, own, frames]}
"""
HANDLERS = """
import asyncio

def plain(payload):
    return {**payload, "plain": True}

async def coroutine(payload):
    await asyncio.sleep(0.001)
    return {**payload, "coroutine": True}

async def frames(payload):
    await asyncio.sleep(0.001)
    yield {**payload, "frames": True}

def own_loop(payload):
    return {**payload, "own": asyncio.run(coroutine({}))}

async def endless(payload):
    await asyncio.sleep(3600)
"""
RESULT = {"n": 1, "plain": True, "coroutine": True, "own": {"coroutine": True}, "frames": True}


@pytest.fixture
def mesh_file(tmp_path: Path) -> Path:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "handlers_of_loops.py").write_text(HANDLERS)
    path = tmp_path / "mesh.yaml"
    path.write_text(MESH)
    return path


def called(mesh: Mesh) -> Any:
    return mesh.call("all", {"n": 1}).result


def in_executor(do: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(do).result()


def in_coroutine(do: Callable[[], Any]) -> Any:
    async def main() -> Any:
        result = do()
        # The loop of the test goes on as before.
        assert asyncio.current_task() is not None
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
        return result

    return asyncio.run(main())


def in_thread_of_coroutine(do: Callable[[], Any]) -> Any:
    return asyncio.run(asyncio.to_thread(do))


PLACES = [lambda do: do(), in_executor, in_coroutine, in_thread_of_coroutine]


@pytest.mark.parametrize("made", PLACES)
@pytest.mark.parametrize("used", PLACES)
def test_a_mesh_works_wherever_it_is_called(
    made: Callable[[Callable[[], Any]], Any], used: Callable[[Callable[[], Any]], Any], mesh_file: Path
) -> None:
    """The first call from another thread went to real AWS, and coroutines found another loop running."""
    mesh = made(lambda: Mesh(mesh_file))
    assert used(lambda: called(mesh)) == RESULT
    assert called(mesh) == RESULT
    assert used(lambda: mesh.runs("succeeded"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.slow
async def test_an_asynchronous_test_calls_asynchronous_handlers(mesh_file: Path) -> None:
    mesh = Mesh(mesh_file)
    assert called(mesh) == RESULT
    assert await asyncio.to_thread(called, mesh) == RESULT
    both = await asyncio.gather(*(asyncio.to_thread(called, each) for each in (mesh, Mesh(mesh_file), mesh)))
    assert both == [RESULT] * 3
    assert called(mesh) == RESULT


def test_the_time_limit_of_a_coroutine_holds_inside_a_loop(mesh_file: Path) -> None:
    assert in_coroutine(lambda: Mesh(mesh_file).send("endless", {}).errors[0].type) == "Timeout"


@pytest.mark.slow
def test_meshes_at_work_in_two_threads_do_not_mix(mesh_file: Path) -> None:
    """The clients of one mesh took the place of those of the other, and the last to leave put the real ones back."""
    meshes = [Mesh(mesh_file) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        # One thread for each mesh: two at a time may not work with one.
        assert list(threads.map(lambda mesh: [called(mesh) for _ in range(3)], meshes)) == [[RESULT] * 3] * 4
    assert [len(mesh.runs()) for mesh in meshes] == [3] * 4


def test_a_call_to_the_gateway_leaves_nothing_to_its_thread(mesh_file: Path) -> None:
    mesh = Mesh(mesh_file)
    body = {"name": "all", "arguments": {"n": 1}}
    in_executor(lambda: mesh.ask("POST", "/tools/call", None, body=body))
    mesh.travel(seconds=10)
    assert [run.status for run in mesh.runs()] == ["succeeded"]


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    running = Scheduler()
    yield running
    running.run()


def test_what_waits_in_one_thread_goes_on_in_no_other(scheduler: Scheduler) -> None:
    ended = list[str]()

    def body() -> None:
        scheduler.wait(10)
        ended.append(threading.current_thread().name)

    scheduler.start(body)
    scheduler.run(until=5)
    with pytest.raises(TestKitError, match="thread 'MainThread' left 1 calls of this mesh unfinished"):
        in_executor(scheduler.run)
    scheduler.run()
    assert ended == ["MainThread"]
    scheduler.start(body)
    in_executor(scheduler.run)
    assert len(ended) == 2
