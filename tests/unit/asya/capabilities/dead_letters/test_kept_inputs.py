"""protocol §12.input: the keys of kept inputs, which inputs count, and what they may say."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.dead_letters.kept_inputs import KeptInput, counting_inputs, mismatch, read_kept_inputs
from asya.light.manifest import CAPABILITY
from asya.needs import OWN, Objects
from asya.protocol.codec import decode
from asya.protocol.envelope import Route
from asya.protocol.hops import HopRecord
from asya.protocol.keys import InputName, input_key, inputs_folder, read_input_name
from asya.protocol.names import LABEL_LIMIT, LABEL_PATTERN
from asya.sidecar.options import KEEP_INPUT
from asya.tasks.view import TaskView
from asya_infra.permissions.evaluation import Request, is_allowed
from tests.doubles.envelopes import message

ROUTE = Route(("prep",), "infer", ("post",))
RESCUE = {"prev": ["any"], "curr": "rescue", "next": []}
ACTORS = st.one_of(
    st.sampled_from(["a", "b", "b-a", "a-b", "x-a"]), st.from_regex(LABEL_PATTERN, fullmatch=True)
).filter(lambda name: len(name) <= LABEL_LIMIT)
IDS = st.one_of(
    st.sampled_from(["t", "t.a.json", "../hops/t", "t/0/1.a.json", ".a.json", "*"]), st.text(min_size=1, max_size=30)
)


def kept(position: int, actor: str, generation: int = 0) -> KeptInput:
    return KeptInput(f"{generation}/{position}.{actor}", InputName(generation, position, actor), 1)


def task(generation: int = 0, route: Route | None = ROUTE) -> TaskView:
    return TaskView(
        id="t", status="failed", progress_percent=5, created_at="a", updated_at="a", generation=generation, route=route
    )


def reported(position: int, actor: str, generation: int = 0) -> HopRecord:
    return HopRecord(
        id="t", generation=generation, position=position, attempt=1, stage="start", actor=actor, percent=1, at="a"
    )


def chosen(
    inputs: list[KeptInput], view: TaskView | None, *hops: HopRecord
) -> tuple[dict[int, tuple[int, str]], set[int]]:
    found = counting_inputs(inputs, view, lambda: hops)
    assert found.counting.keys() | found.doubted.keys() == {each.name.position for each in inputs}
    assert not found.counting.keys() & found.doubted.keys()
    return {at: (each.name.generation, each.name.actor) for at, each in found.counting.items()}, {*found.doubted}


@pytest.mark.rule("12.keep_input", "12.input.writers")
@given(IDS, st.integers(0, 9_999), st.integers(0, 9), ACTORS, ACTORS)
def test_an_actor_writes_the_keys_of_its_own_inputs_only(
    envelope_id: str, generation: int, position: int, actor: str, other: str
) -> None:
    route = {"prev": ["x"] * position, "curr": actor, "next": []}
    stored = decode(message(id="e", route=route, headers={"x-asya-generation": generation}))
    key = input_key(
        type(stored)(id=envelope_id, route=stored.route, headers=stored.headers, payload=stored.payload), actor
    )
    folder = inputs_folder(envelope_id)
    assert read_input_name(key.removeprefix(folder)) == (generation, position, actor)
    [need] = CAPABILITY.option_needs[KEEP_INPUT.key]
    assert isinstance(need, Objects)
    for name in (actor, other):
        pattern = [each.replace(OWN, name) for each in need.keys]
        statement = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": pattern}
        assert is_allowed([statement], Request("s3:PutObject", key)) == (name == actor)


@pytest.mark.parametrize(
    "name",
    ["0/1.json", "0/1.a", "00/1.a.json", "0/01.a.json", "0/1.a.b.json", "0/1..json", "0/1.A.json", "٠/1.a.json", "1.a.json",
     "10000/1.a.json", "0/1/2.a.json", "0/1.a.json\n", "-1/1.a.json", ""],
)  # fmt: skip
def test_no_other_name_is_that_of_an_input(name: str) -> None:
    assert read_input_name(name) is None
    assert list(read_kept_inputs("s3://b/hops/t/", [(f"s3://b/hops/t/{name}", 1)])) == []


@pytest.mark.rule("12.input.counts")
def test_the_record_says_whose_input_of_a_hop_counts() -> None:
    """By the reports of the hop, else by the route: each combination of who is reported, and who has kept an input."""
    names = ("infer", "eve", "rescue")
    some = [{*pair} for size in range(4) for pair in product(names, repeat=size)]
    for by, keepers in product(some, [each for each in some if each]):
        inputs = [kept(1, actor) for actor in sorted(keepers)]
        counting, doubted = chosen(inputs, task(), *(reported(1, actor) for actor in by))
        expected = next(iter(by)) if len(by) == 1 else "infer"
        assert (counting, doubted) == (({1: (0, expected)}, set()) if expected in keepers else ({}, {1})), (by, keepers)


@pytest.mark.rule("12.input.counts", "12.replay.where")
def test_the_latest_generation_counts_up_to_that_of_the_record() -> None:
    inputs = [kept(1, "infer", generation) for generation in (0, 1, 2, 9_999)]
    for generation in (0, 1, 2):
        assert chosen(inputs, task(generation)) == ({1: (generation, "infer")}, set())
    assert chosen([kept(1, "infer", 1)], task()) == ({}, {1})
    # A redrive has led it elsewhere, and the hops of each generation have reports of their own.
    hops = [reported(1, "infer"), reported(1, "rescue", 1)]
    assert chosen([kept(1, "infer"), kept(1, "eve", 1)], task(1), *hops) == ({1: (0, "infer")}, set())
    assert chosen([kept(1, "infer"), kept(1, "rescue", 1)], task(1), *hops) == ({1: (1, "rescue")}, set())


@pytest.mark.rule("12.input.counts")
def test_a_hop_that_the_record_does_not_know_has_no_input() -> None:
    for view in (task(), task(route=None)):
        assert chosen([kept(3, "eve"), kept(99_999_999, "eve")], view)[1] == {3, 99_999_999}


@pytest.mark.rule("12.input.counts")
def test_without_a_record_the_inputs_of_several_actors_count_as_none() -> None:
    inputs = [kept(0, "prep"), kept(0, "prep", 2), kept(1, "infer"), kept(1, "eve", 9_999), kept(2, "post")]
    assert chosen(inputs, None) == ({0: (2, "prep"), 2: (0, "post")}, {1})


def test_hops_are_read_only_if_the_record_has_to_tell() -> None:
    def read() -> list[HopRecord]:
        raise AssertionError

    counting_inputs([], task(), read)
    counting_inputs([kept(1, "infer")], None, read)


@pytest.mark.rule("12.input.content")
@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({}, None),
        ({"headers": {"x-asya-route-override": {"infer": "infer", "post": "eve"}}}, None),
        ({"route": RESCUE, "headers": {"x-asya-route-override": {"rescue": "infer"}}}, None),
        ({"route": RESCUE}, "at 'rescue'"),
        ({"headers": {"x-asya-route-override": {"infer": "post"}}}, "at 'post'"),
        ({"route": {"prev": ["prep"], "curr": "post", "next": []}}, "at 'post'"),
        ({"route": {"prev": ["prep"], "curr": "", "next": []}}, "at ''"),
        ({"route": {"prev": [], "curr": "infer", "next": []}}, "hop 0 of generation 0"),
        ({"headers": {"x-asya-generation": 3}}, "hop 1 of generation 3"),
        ({"id": "env-2"}, "'env-2'"),
        ({"payload": None, "headers": {"x-asya-payload-ref": {"key": "payloads/infer/a"}}}, "refers to a payload"),
    ],
)  # fmt: skip
def test_an_input_is_what_its_key_names(members: dict[str, Any], problem: str | None) -> None:
    said = mismatch(decode(message(**members)), "s3://bucket/hops/env-1/0/1.infer.json")
    assert said is None if problem is None else said is not None and problem in said and "its key" in said
