"""protocol §9 on the deployed mesh, IAM enforced: sets of any width, in every way they can come about and end; one end each.

All sets are sets before the first test looks.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from asya.protocol import ids, names
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.paths_mesh import envelopes_with_note
from tests.cloud.slice_sets import (
    ERROR_MESSAGE,
    SIZES,
    fan_out,
    merged_payload,
    number_items,
    scored_items,
    send_all,
    shuffled,
    slice_message,
    slice_messages,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.cloud


def succeeded(cloud: DeployedCloud, envelope_id: str) -> Any:
    """The payload that a task ended with."""
    task = cloud.wait_for_end(envelope_id)
    assert (task.status, task.error) == ("succeeded", None)
    envelope = cloud.envelope(task)
    assert "x-asya-fan-in" not in envelope.get("headers", {})
    return envelope["payload"]


def failed(cloud: DeployedCloud, envelope_id: str) -> tuple[str | None, str]:
    """Why a task failed, and the message of its error."""
    task = cloud.wait_for_end(envelope_id)
    assert task.status == "failed"
    assert task.error is not None
    return task.reason, task.error.message


def child(origin: str, index: int, position: int = 0) -> str:
    return ids.child_id(origin, 0, position, index)


# --- every way, at every size --------------------------------------------------------------------------------------------


def comes_twice(cloud: DeployedCloud, items: int) -> list[str]:
    """Every slice twice."""
    origin = str(uuid4())
    send_all(cloud, "x-fan-in", shuffled(slice_messages(origin, items) * 2))
    return [origin]


def in_any_order(cloud: DeployedCloud, items: int) -> list[str]:
    """The last first, the origin last, and without any order."""
    origins = [str(uuid4()) for _ in range(3)]
    whole = [slice_messages(origin, items) for origin in origins]
    for bodies in (whole[0][::-1], [*whole[1][1:], whole[1][0]], shuffled(whole[2])):
        send_all(cloud, "x-fan-in", bodies)
    return origins


def lacks_one(cloud: DeployedCloud, items: int) -> list[str]:
    """All but the last."""
    origin = str(uuid4())
    send_all(cloud, "hurry", slice_messages(origin, items, at="hurry")[:-1])
    return [origin]


def fails_at_one(cloud: DeployedCloud, items: int) -> list[str]:
    """An actor makes a mistake of the last."""
    return [fan_out(cloud, {"items": [*number_items(items - 1), {"fail": ERROR_MESSAGE}]})]


def holds_another(cloud: DeployedCloud, items: int) -> list[str]:
    """The first is a set of its own, as large."""
    return [fan_out(cloud, {"items": [{"items": number_items(items)}, *number_items(items - 1)]})]


def follows_another(cloud: DeployedCloud, items: int) -> list[str]:
    """The origin is fanned out once more."""
    return [fan_out(cloud, {"items": number_items(items)}, "x-fan-in", "split", "x-fan-in", "publish")]


def among_another(cloud: DeployedCloud, items: int) -> list[str]:
    """Of two sets by turns."""
    origins = [str(uuid4()) for _ in range(2)]
    both = zip(*(shuffled(slice_messages(origin, items)) for origin in origins), strict=True)
    send_all(cloud, "x-fan-in", [body for pair in both for body in pair])
    return origins


def is_merged(cloud: DeployedCloud, origin: str, items: int) -> None:
    assert succeeded(cloud, origin) == merged_payload(items)


def is_out_of_time(cloud: DeployedCloud, origin: str, items: int) -> None:
    reason, message = failed(cloud, origin)
    assert reason == "FanInTimeout"
    # Of a larger set others may have been too slow on a busy machine: those that come later change nothing.
    said = re.fullmatch(r"(\d+) of (\d+) slices did not arrive in time: ([\d, …]+)", message)
    assert said is not None, message
    assert int(said[2]) == items + 1
    if items <= 2:
        assert (said[1], said[3]) == ("1", str(items))
    assert int(said[1]) >= 1
    assert "…" in said[3] or str(items) in said[3].split(", ")


def is_failed(cloud: DeployedCloud, origin: str, items: int) -> None:
    assert failed(cloud, origin) == ("SliceFailed", ERROR_MESSAGE)
    assert failed(cloud, child(origin, items))[1] == ERROR_MESSAGE


def has_both(cloud: DeployedCloud, origin: str, items: int) -> None:
    first, *others = succeeded(cloud, origin)["results"]
    assert first["results"] == scored_items(items)
    assert others == scored_items(items - 1)


def is_merged_twice(cloud: DeployedCloud, origin: str, items: int) -> None:
    envelope = cloud.envelope(cloud.wait_for_end(origin))
    assert envelope["route"]["prev"] == ["split", "x-fan-in", "split", "x-fan-in", "publish"]
    assert succeeded(cloud, origin)["results"] == scored_items(items)


@dataclass(frozen=True)
class SetCase:
    """How sets come about, what becomes of each, and how often that leaves its fan-in actor for publish."""

    start: Callable[[DeployedCloud, int], list[str]]
    check: Callable[[DeployedCloud, str, int], None]
    leaves: int = 1


SET_CASES = {
    "each slice twice": SetCase(comes_twice, is_merged),
    "in any order": SetCase(in_any_order, is_merged),
    "a slice is missing": SetCase(lacks_one, is_out_of_time, leaves=0),
    "a slice fails": SetCase(fails_at_one, is_failed, leaves=0),
    "one in another": SetCase(holds_another, has_both),
    "two of one origin": SetCase(follows_another, is_merged_twice),
    "two at once": SetCase(among_another, is_merged),
}
WIDE = [0, 50, *({200} - {*SIZES})]
LARGE = [letter * 300_000 for letter in "ab"]
INNER = {"items": number_items(2)}
SPLIT: dict[str, dict[str, Any]] = {
    **{f"{count} items": {"items": number_items(count), "kept": True} for count in WIDE},
    **{f"text {number}": {"items": [{"n": n, "text": f"{number}"} for n in range(4)]} for number in range(8)},
    "nested": {"items": [{"n": 7}, INNER, INNER | {"at": "gather"}]},
    "large": {"items": [*({"n": 1, "text": text} for text in LARGE), *number_items(1)]},
    "failing": {"items": [{"n": 1}, {"fail": ERROR_MESSAGE}, {"n": 3}]},
    "failing, borne": {"items": [{"n": 1}, {"fail": "x"}, {"n": 3}], "at": "gather"},
    "failing, below the quorum": {"items": [{"fail": "x"}], "at": "gather"},
    "failing inside": {"items": [{"n": 7}, {"items": [{"n": 1}, {"fail": "deep inside"}]}]},
    "failing inside, borne": {"items": [{"n": 7}, {"items": [{"n": 1}, {"fail": "deep inside"}]}], "at": "gather"},
}


@dataclass(frozen=True)
class SentSets:
    """All sets, sets.

    Attributes:
        ways: the origins of each way and size.
        split: those that split fanned out, by name.
        late: those with a slice that has not come yet, by fan-in actor.
        fifty: the origins of sets of fifty that come as they like.
    """

    ways: dict[tuple[str, int], list[str]]
    split: dict[str, str]
    late: dict[str, str]
    fifty: list[str]


@pytest.fixture(scope="module")
def sets(paths: DeployedCloud) -> SentSets:
    """All sets are sets together: what they wait for goes by once."""
    late = {at: str(uuid4()) for at in ("hurry", "hurry-partial")}
    for at, origin in late.items():
        send_all(paths, at, slice_messages(origin, 2, at=at)[:-1])
    ways = {(name, size): way.start(paths, size) for size in reversed(SIZES) for name, way in SET_CASES.items()}
    split = {name: fan_out(paths, payload) for name, payload in SPLIT.items()}
    return SentSets(ways, split, late, in_any_order(paths, 50))


@pytest.mark.rule("9.merge")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SET_CASES)
def test_each_set_comes_to_one_end(paths: DeployedCloud, sets: SentSets, name: str, size: int) -> None:
    for origin in sets.ways[name, size]:
        SET_CASES[name].check(paths, origin, size)


@pytest.mark.parametrize("count", WIDE)
def test_items_come_back_in_their_order(paths: DeployedCloud, sets: SentSets, count: int) -> None:
    origin = sets.split[f"{count} items"]
    payload = succeeded(paths, origin)
    assert payload["results"] == scored_items(count)
    assert payload["kept"] is True
    for index in {1, count} & set(range(1, count + 1)):
        task = paths.wait_for_end(child(origin, index))
        assert (task.status, task.parent_id) == ("succeeded", origin)


@pytest.mark.rule("9.merge")
def test_fifty_slices_may_come_as_they_like(paths: DeployedCloud, sets: SentSets) -> None:
    for origin in sets.fifty:
        assert succeeded(paths, origin) == merged_payload(50)


def test_many_sets_at_once_do_not_mix(paths: DeployedCloud, sets: SentSets) -> None:
    for number in range(8):
        payload = succeeded(paths, sets.split[f"text {number}"])
        assert [item["text"] for item in payload["results"]] == [f"{number}"] * 4


def test_sets_nest(paths: DeployedCloud, sets: SentSets) -> None:
    payload = succeeded(paths, sets.split["nested"])
    assert payload["results"][0]["scored"] == 70
    assert [payload["results"][index]["results"] for index in (1, 2)] == [scored_items(2), scored_items(2)]


def test_large_slices_and_a_merged_envelope_larger_than_a_message(paths: DeployedCloud, sets: SentSets) -> None:
    payload = succeeded(paths, sets.split["large"])
    assert [item["text"] for item in payload["results"]] == [*LARGE, ""]
    assert paths.wait_for_end(child(sets.split["large"], 1)).result_uri is not None


# --- slices that end without a result, or late ---------------------------------------------------------------------------


def test_a_failing_slice_fails_the_origin(paths: DeployedCloud, sets: SentSets) -> None:
    origin = sets.split["failing"]
    assert failed(paths, origin) == ("SliceFailed", ERROR_MESSAGE)
    assert failed(paths, child(origin, 2))[1] == ERROR_MESSAGE
    assert paths.wait_for_end(child(origin, 3)).status == "succeeded"


def test_a_partial_set_has_null_in_its_place(paths: DeployedCloud, sets: SentSets) -> None:
    payload = succeeded(paths, sets.split["failing, borne"])
    assert [item and item["scored"] for item in payload["results"]] == [10, None, 30]


def test_without_its_quorum_a_partial_set_fails(paths: DeployedCloud, sets: SentSets) -> None:
    assert failed(paths, sets.split["failing, below the quorum"]) == ("SliceFailed", "x")


def test_an_inner_failure_is_a_failed_slice_of_the_outer_set(paths: DeployedCloud, sets: SentSets) -> None:
    origin = sets.split["failing inside"]
    assert failed(paths, origin) == ("SliceFailed", "deep inside")
    assert failed(paths, child(origin, 2)) == ("SliceFailed", "deep inside")
    borne = succeeded(paths, sets.split["failing inside, borne"])
    assert borne["results"][1] is None


def test_a_slice_that_is_late_ends_its_set_and_then_only_itself(paths: DeployedCloud, sets: SentSets) -> None:
    origin = sets.late["hurry"]
    assert failed(paths, origin) == ("FanInTimeout", "1 of 3 slices did not arrive in time: 2")
    paths.send_raw("hurry", slice_message(origin, 3, 2, at="hurry"))
    assert paths.wait_for_end(f"{origin}-2").status == "succeeded"
    assert paths.wait_for_end(origin).status == "failed"


def test_a_partial_set_goes_on_when_its_time_is_up(paths: DeployedCloud, sets: SentSets) -> None:
    origin = sets.late["hurry-partial"]
    assert succeeded(paths, origin) == {"said": 0, "r": [{"said": 1}, None]}
    paths.send_raw("hurry-partial", slice_message(origin, 3, 2, at="hurry-partial"))
    assert paths.wait_for_end(f"{origin}-2").status == "succeeded"
    assert succeeded(paths, origin)["r"] == [{"said": 1}, None]


def test_what_is_no_slice_may_not_come(paths: DeployedCloud) -> None:
    envelope = {"id": str(uuid4()), "route": {"prev": [], "curr": "x-fan-in", "next": []}, "payload": {}}
    paths.send_raw("x-fan-in", json.dumps(envelope))
    reason, message = failed(paths, str(envelope["id"]))
    assert reason == "RouteMismatch"
    assert "fan_out" in message


def test_of_two_slices_with_one_number_the_first_counts(paths: DeployedCloud) -> None:
    origin = str(uuid4())

    def send(index: int, said: str) -> None:
        paths.send_raw("x-fan-in", slice_message(origin, 3, index, said=said))

    send(2, "first")
    until(lambda: paths.task(f"{origin}-2"), "the first to be stored")
    send(2, "second")
    send(0, "origin")
    send(1, "one")
    send(1, "one")
    send(0, "origin")
    assert succeeded(paths, origin) == {"said": "origin", "r": [{"said": "one"}, {"said": "first"}]}


@pytest.mark.rule("9.merge.once")
def test_nothing_else_came_of_any_set(paths: DeployedCloud, sets: SentSets) -> None:
    """Not even later: of duplicates, of slices that were late, of ends that were told twice."""
    leaves = {origin: SET_CASES[name].leaves for (name, _), origins in sets.ways.items() for origin in origins}
    expected = Counter(leaves | dict.fromkeys(sets.fifty, 1))

    def published() -> Counter[str]:
        """How often each came to publish."""
        return Counter(origin for origin in envelopes_with_note(paths, "published") if origin in expected)

    until(lambda: published().total() >= expected.total() or None, "all sets to be put together")
    for actor in ("x-fan-in", "hurry", "publish"):
        queue = names.queue_name("paths", actor)
        until(lambda queue=queue: paths.message_count(queue) == 0 or None, f"{queue} to be empty")  # type: ignore[misc]
    assert published() == +expected


@pytest.mark.rule("15.FanInOpen")
def test_the_sweep_may_read_the_index_and_counts_the_open_sets(paths: DeployedCloud) -> None:
    origin = str(uuid4())
    paths.send_raw("x-fan-in", slice_message(origin, 2, 1))
    paths.wait_for_end(f"{origin}-1")
    answer = paths.client("lambda").invoke(FunctionName="asya-paths-x-fan-in-sweep", LogType="Tail", Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()
    said = base64.b64decode(answer["LogResult"]).decode()
    counts = {
        metric["actor"]: metric["FanInOpen"][0]
        for metric in map(json.loads, filter(lambda line: line.startswith("{"), said.splitlines()))
        if "FanInOpen" in metric
    }
    assert counts["x-fan-in"] >= 1
    assert counts["gather"] == 0
