"""Tests protocol §9 on the deployed mesh, with IAM enforced: sets of many sizes and histories, with one end each.

The fixture sends all sets before the first test.
"""

from __future__ import annotations

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
    HEAVY_ITEMS,
    SIZES,
    fan_out,
    heavy_slice_messages,
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
    """Waits for the success of a task and returns its payload."""
    task = cloud.wait_for_end(envelope_id)
    assert (task.status, task.error) == ("succeeded", None)
    envelope = cloud.envelope(task)
    assert "x-asya-fan-in" not in envelope.get("headers", {})
    return envelope["payload"]


def failed(cloud: DeployedCloud, envelope_id: str) -> tuple[str | None, str]:
    """Waits for the failure of a task; returns the reason and the message of the error."""
    task = cloud.wait_for_end(envelope_id)
    assert task.status == "failed"
    assert task.error is not None
    return task.reason, task.error.message


def lost(cloud: DeployedCloud, origin: str) -> tuple[str, str]:
    """Waits for the failure of a task because of a lost slice; returns what names the slice, and the message of its error."""
    reason, message = failed(cloud, origin)
    assert reason == "SliceFailed"
    name, _, error = message.partition(": ")
    return name, error


def child(origin: str, index: int, position: int = 0) -> str:
    return ids.child_id(origin, 0, position, index)


# --- each case in each size


def send_duplicates(cloud: DeployedCloud, items: int) -> list[str]:
    """Sends each slice twice."""
    origin = str(uuid4())
    send_all(cloud, "x-fan-in", shuffled(slice_messages(origin, items) * 2))
    return [origin]


def send_in_other_orders(cloud: DeployedCloud, items: int) -> list[str]:
    """Sends three sets: reversed, with the origin last, and shuffled."""
    origins = [str(uuid4()) for _ in range(3)]
    sets = [slice_messages(origin, items) for origin in origins]
    for bodies in (sets[0][::-1], [*sets[1][1:], sets[1][0]], shuffled(sets[2])):
        send_all(cloud, "x-fan-in", bodies)
    return origins


def send_all_but_one(cloud: DeployedCloud, items: int) -> list[str]:
    """Sends all slices but the last."""
    origin = str(uuid4())
    send_all(cloud, "short-timeout", slice_messages(origin, items, at="short-timeout")[:-1])
    return [origin]


def fan_out_with_failure(cloud: DeployedCloud, items: int) -> list[str]:
    """Fans out items; the last one fails."""
    return [fan_out(cloud, {"items": [*number_items(items - 1), {"fail": ERROR_MESSAGE}]})]


def fan_out_nested(cloud: DeployedCloud, items: int) -> list[str]:
    """Fans out items; the first one fans out into as many."""
    return [fan_out(cloud, {"items": [{"items": number_items(items)}, *number_items(items - 1)]})]


def fan_out_twice(cloud: DeployedCloud, items: int) -> list[str]:
    """Fans out, merges, and fans out the same origin again."""
    return [fan_out(cloud, {"items": number_items(items)}, "x-fan-in", "split", "x-fan-in", "publish")]


def send_interleaved(cloud: DeployedCloud, items: int) -> list[str]:
    """Sends the slices of two sets in turns."""
    origins = [str(uuid4()) for _ in range(2)]
    both = zip(*(shuffled(slice_messages(origin, items)) for origin in origins), strict=True)
    send_all(cloud, "x-fan-in", [body for pair in both for body in pair])
    return origins


def check_merged(cloud: DeployedCloud, origin: str, items: int) -> None:
    assert succeeded(cloud, origin) == merged_payload(items)


def check_timeout(cloud: DeployedCloud, origin: str, items: int) -> None:
    reason, message = failed(cloud, origin)
    assert reason == "FanInTimeout"
    # On a busy machine, more slices of a large set may be late.
    match = re.fullmatch(r"(\d+) of (\d+) slices did not arrive in time: ([\d, …]+)", message)
    assert match is not None, message
    assert int(match[2]) == items + 1
    if items <= 2:
        assert (match[1], match[3]) == ("1", str(items))
    assert int(match[1]) >= 1
    assert "…" in match[3] or str(items) in match[3].split(", ")


def check_failed(cloud: DeployedCloud, origin: str, items: int) -> None:
    name, error = lost(cloud, origin)
    assert name.startswith(f"slice {items} ({child(origin, items)}) at ")
    assert error == ERROR_MESSAGE
    assert failed(cloud, child(origin, items))[1] == ERROR_MESSAGE


def check_nested(cloud: DeployedCloud, origin: str, items: int) -> None:
    first, *others = succeeded(cloud, origin)["results"]
    assert first["results"] == scored_items(items)
    assert others == scored_items(items - 1)


def check_merged_twice(cloud: DeployedCloud, origin: str, items: int) -> None:
    envelope = cloud.envelope(cloud.wait_for_end(origin))
    assert envelope["route"]["prev"] == ["split", "x-fan-in", "split", "x-fan-in", "publish"]
    assert succeeded(cloud, origin)["results"] == scored_items(items)


@dataclass(frozen=True)
class SetCase:
    """How sets are started and checked, and how often each reaches publish."""

    start: Callable[[DeployedCloud, int], list[str]]
    check: Callable[[DeployedCloud, str, int], None]
    merges: int = 1


SET_CASES = {
    "each slice twice": SetCase(send_duplicates, check_merged),
    "in any order": SetCase(send_in_other_orders, check_merged),
    "a slice is missing": SetCase(send_all_but_one, check_timeout, merges=0),
    "a slice fails": SetCase(fan_out_with_failure, check_failed, merges=0),
    "one in another": SetCase(fan_out_nested, check_nested),
    "two of one origin": SetCase(fan_out_twice, check_merged_twice),
    "two at once": SetCase(send_interleaved, check_merged),
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
    "failing, partial": {"items": [{"n": 1}, {"fail": "x"}, {"n": 3}], "at": "gather"},
    "failing, below the quorum": {"items": [{"fail": "x"}], "at": "gather"},
    "failing inside": {"items": [{"n": 7}, {"items": [{"n": 1}, {"fail": "deep inside"}]}]},
    "failing inside, partial": {"items": [{"n": 7}, {"items": [{"n": 1}, {"fail": "deep inside"}]}], "at": "gather"},
}


@dataclass(frozen=True)
class SentSets:
    """The origins of the sent sets.

    Attributes:
        cases: The origins by case and size.
        split: The origins at split, by name.
        late: The origins of sets with a missing slice, by fan-in actor.
        fifty: The origins of sets of fifty slices in other orders.
    """

    cases: dict[tuple[str, int], list[str]]
    split: dict[str, str]
    late: dict[str, str]
    fifty: list[str]


@pytest.fixture(scope="module")
def sets(paths: DeployedCloud) -> SentSets:
    """Sends all sets together, so that their delays overlap."""
    late = {at: str(uuid4()) for at in ("short-timeout", "short-timeout-partial")}
    for at, origin in late.items():
        send_all(paths, at, slice_messages(origin, 2, at=at)[:-1])
    cases = {(name, size): case.start(paths, size) for size in reversed(SIZES) for name, case in SET_CASES.items()}
    split = {name: fan_out(paths, payload) for name, payload in SPLIT.items()}
    return SentSets(cases, split, late, send_in_other_orders(paths, 50))


@pytest.mark.rule("9.merge")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SET_CASES)
def test_each_set_has_one_end(paths: DeployedCloud, sets: SentSets, name: str, size: int) -> None:
    for origin in sets.cases[name, size]:
        SET_CASES[name].check(paths, origin, size)


@pytest.mark.parametrize("count", WIDE)
def test_results_keep_the_order_of_the_items(paths: DeployedCloud, sets: SentSets, count: int) -> None:
    origin = sets.split[f"{count} items"]
    payload = succeeded(paths, origin)
    assert payload["results"] == scored_items(count)
    assert payload["kept"] is True
    for index in {1, count} & set(range(1, count + 1)):
        task = paths.wait_for_end(child(origin, index))
        assert (task.status, task.parent_id) == ("succeeded", origin)


@pytest.mark.rule("9.merge")
def test_fifty_slices_merge_in_any_order(paths: DeployedCloud, sets: SentSets) -> None:
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


@pytest.mark.rule("9.size", "9.count")
def test_a_set_of_heavy_slices_merges(paths: DeployedCloud) -> None:
    origin = str(uuid4())
    send_all(paths, "x-fan-in", heavy_slice_messages(origin, HEAVY_ITEMS))
    task = paths.wait_for_end(origin, seconds=900)
    assert (task.status, task.error) == ("succeeded", None)
    values = [item["value"] for item in paths.envelope(task)["payload"]["r"]]
    assert [value.partition("-")[0] for value in values] == [str(number) for number in range(1, HEAVY_ITEMS + 1)]
    assert {len(value.partition("-")[2]) for value in values} == {50 * 1024}


# --- failed and late slices


def test_a_failing_slice_fails_the_origin(paths: DeployedCloud, sets: SentSets) -> None:
    origin = sets.split["failing"]
    assert lost(paths, origin) == (f"slice 2 ({child(origin, 2)}) at score", ERROR_MESSAGE)
    assert failed(paths, child(origin, 2))[1] == ERROR_MESSAGE
    assert paths.wait_for_end(child(origin, 3)).status == "succeeded"


def test_a_partial_merge_has_null_for_a_failed_slice(paths: DeployedCloud, sets: SentSets) -> None:
    payload = succeeded(paths, sets.split["failing, partial"])
    assert [item and item["scored"] for item in payload["results"]] == [10, None, 30]


def test_a_partial_merge_below_its_quorum_fails(paths: DeployedCloud, sets: SentSets) -> None:
    assert lost(paths, sets.split["failing, below the quorum"])[1] == "x"


def test_an_inner_failure_is_a_failed_slice_of_the_outer_set(paths: DeployedCloud, sets: SentSets) -> None:
    origin = sets.split["failing inside"]
    assert lost(paths, child(origin, 2))[1] == "deep inside"
    name, error = lost(paths, origin)
    assert name == f"slice 2 ({child(origin, 2)}) at x-fan-in"
    assert error.endswith(": deep inside")
    partial = succeeded(paths, sets.split["failing inside, partial"])
    assert partial["results"][1] is None


def test_a_late_slice_ends_alone_after_its_set_timed_out(paths: DeployedCloud, sets: SentSets) -> None:
    origin = sets.late["short-timeout"]
    assert failed(paths, origin) == ("FanInTimeout", "1 of 3 slices did not arrive in time: 2")
    paths.send_as_mesh("short-timeout", slice_message(origin, 3, 2, at="short-timeout"))
    assert paths.wait_for_end(f"{origin}-2").status == "succeeded"
    assert paths.wait_for_end(origin).status == "failed"


def test_a_partial_merge_continues_at_the_timeout(paths: DeployedCloud, sets: SentSets) -> None:
    origin = sets.late["short-timeout-partial"]
    assert succeeded(paths, origin) == {"value": 0, "r": [{"value": 1}, None]}
    paths.send_as_mesh("short-timeout-partial", slice_message(origin, 3, 2, at="short-timeout-partial"))
    assert paths.wait_for_end(f"{origin}-2").status == "succeeded"
    assert succeeded(paths, origin)["r"] == [{"value": 1}, None]


def test_a_fan_in_actor_rejects_other_envelopes(paths: DeployedCloud) -> None:
    envelope = {"id": str(uuid4()), "route": {"prev": [], "curr": "x-fan-in", "next": []}, "payload": {}}
    paths.send_raw("x-fan-in", json.dumps(envelope))
    reason, message = failed(paths, str(envelope["id"]))
    assert reason == "RouteMismatch"
    assert "fan_out" in message


def test_the_first_of_two_slices_with_one_index_counts(paths: DeployedCloud) -> None:
    origin = str(uuid4())

    def send(index: int, value: str) -> None:
        paths.send_as_mesh("x-fan-in", slice_message(origin, 3, index, value=value))

    send(2, "first")
    until(lambda: paths.task(f"{origin}-2"), "the first to be stored")
    send(2, "second")
    send(0, "origin")
    send(1, "one")
    send(1, "one")
    send(0, "origin")
    assert succeeded(paths, origin) == {"value": "origin", "r": [{"value": "one"}, {"value": "first"}]}


@pytest.mark.rule("9.merge.once")
def test_each_set_merges_at_most_once(paths: DeployedCloud, sets: SentSets) -> None:
    """Duplicates, late slices and repeated reports of ends cause no second merge."""
    merges = {origin: SET_CASES[name].merges for (name, _), origins in sets.cases.items() for origin in origins}
    expected = Counter(merges | dict.fromkeys(sets.fifty, 1))

    def published() -> Counter[str]:
        """Counts the calls of publish by origin."""
        return Counter(origin for origin in envelopes_with_note(paths, "published") if origin in expected)

    until(lambda: published().total() >= expected.total() or None, "all sets to be merged")
    for actor in ("x-fan-in", "short-timeout", "publish"):
        queue = names.queue_name("paths", actor)
        until(lambda queue=queue: paths.message_count(queue) == 0 or None, f"{queue} to be empty")  # type: ignore[misc]
    assert published() == +expected


@pytest.mark.rule("15.FanInOpen")
def test_the_sweep_counts_the_open_sets(paths: DeployedCloud) -> None:
    origin = str(uuid4())
    paths.send_as_mesh("x-fan-in", slice_message(origin, 2, 1))
    paths.wait_for_end(f"{origin}-1")
    log = paths.invoke_scheduled(names.FAN_IN_SWEEP)
    counts = {
        metric["actor"]: metric["FanInOpen"]
        for metric in map(json.loads, filter(lambda line: line.startswith("{"), log.splitlines()))
        if "FanInOpen" in metric
    }
    assert counts["x-fan-in"] >= 1
    assert "gather" not in counts
