"""Tests the envelopes of chaos: the seed determines them, and the handlers of the mesh give the expected results."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from asya_infra.mesh_file import load_mesh
from tests.chaos.chaos_run import MESH
from tests.chaos.envelopes import FIRST, SHARES, ChaosEnvelope, Flow, draw_envelopes

if TYPE_CHECKING:
    from collections.abc import Callable

HANDLERS = MESH.parent / "handlers" / "chaos_handlers.py"
JOBS = MESH.parent / "jobs" / "chaos_jobs.py"


def envelope_of(flow: Flow) -> ChaosEnvelope:
    return next(each for each in draw_envelopes(3, 200, 100) if each.flow == flow)


def outputs(handler: Callable[[Any], Any], payload: Any, attempt: int = 3) -> list[Any]:
    """The frames of a handler; commands are answered as the sidecar does."""
    result = handler(payload)
    if not hasattr(result, "send"):
        return [result]
    frames: list[Any] = []
    answer = None
    while True:
        try:
            frame = result.send(answer)
        except StopIteration:
            return frames
        answer = attempt if frame == ("GET", ".status.attempt") else None
        if not isinstance(frame, tuple):
            frames.append(frame)


@pytest.fixture
def handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The handlers of the mesh; their notes are in `tmp_path`."""
    monkeypatch.setenv("ASYA_DATA_URI", f"{tmp_path.as_uri()}/")
    return runpy.run_path(str(HANDLERS))


def test_a_seed_determines_the_envelopes() -> None:
    assert draw_envelopes(7, 300, 100) == draw_envelopes(7, 300, 100)
    assert draw_envelopes(7, 300, 100) != draw_envelopes(8, 300, 100)


@pytest.mark.parametrize("count", [5, 50, 2000])
def test_all_flows_start_within_the_load(count: int) -> None:
    envelopes = draw_envelopes(7, count, 100)
    assert len({each.name for each in envelopes}) == count
    assert {each.flow for each in envelopes} == set(SHARES)
    assert all(0 <= each.start <= 100 for each in envelopes)
    assert [each.start for each in envelopes] == sorted(each.start for each in envelopes)


def test_the_mesh_has_ten_actors_and_each_is_in_a_route() -> None:
    mesh = load_mesh(MESH, "").mesh
    assert len(mesh.actors) == 10
    assert sum(actor.spark is not None for actor in mesh.actors.values()) == 3
    routed = {actor for flow in SHARES for actor in envelope_of(flow).route}
    slices = {"score", "clean"}
    assert {FIRST} | routed | slices == set(mesh.actors)


def test_the_light_route_gives_the_expected_result(handlers: dict[str, Any], tmp_path: Path) -> None:
    envelope = envelope_of("light")
    payload: Any = {**envelope.payload, "plan": envelope.route}
    for actor in (FIRST, *envelope.route):
        (payload,) = outputs(handlers[actor], payload)
    assert payload == envelope.result
    notes = {(path.parts[-3], path.parts[-2]) for path in tmp_path.rglob("effects/*/*/*")}
    assert notes == {(actor, name) for actor, names in envelope.effects.items() for name in names}


def test_price_fails_in_the_first_attempts(handlers: dict[str, Any]) -> None:
    with pytest.raises(ConnectionError, match="attempt 2"):
        outputs(handlers["price"], {"name": "a", "n": 1, "trail": [], "failures": 2}, attempt=2)


def test_the_heavy_route_gives_the_expected_result() -> None:
    """The DataFrame job `square` runs in the cloud only; its formula is that of the expected result."""
    jobs, envelope = runpy.run_path(str(JOBS)), envelope_of("heavy")
    payload = jobs["clean"](None, {**envelope.payload, "trail": ["intake"]})
    payload |= {"squared": payload["cleaned"] ** 2, "trail": [*payload["trail"], "square"]}
    payload = jobs["rank"](None, payload)
    assert {**payload, "trail": [*payload["trail"], "publish"]} == envelope.result


def test_the_slices_give_the_expected_results(handlers: dict[str, Any]) -> None:
    envelope = envelope_of("set")
    fan_out = list(handlers["split"]({**envelope.payload, "trail": ["intake"]}))
    items = next(each for each in fan_out if hasattr(each, "items")).items
    assert [outputs(handlers["score"], item)[0] for item in items] == envelope.result["results"]
    assert len(envelope.children("origin")) == envelope.items
