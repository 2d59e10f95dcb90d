"""protocol §4: derived ids are UUIDs version 8, equal for a redelivery and different otherwise."""

import posixpath
import re
import shlex
import uuid
from urllib.parse import quote, unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asya.protocol import ids
from asya.protocol.table_keys import SPECIAL_KEYS
from tests.fuzz.envelope_ids import REFUSED, USABLE
from tests.fuzz.sizes import examples

HOPS = st.tuples(st.text(min_size=1), st.integers(0, 99), st.integers(0, 99), st.integers(1, 99) | st.just("error"))


@pytest.mark.rule("4.child-ids")
@given(HOPS)
def test_child_ids_are_uuids_of_version_8(hop: tuple[str, int, int, int | str]) -> None:
    child = uuid.UUID(ids.child_id(*hop))
    assert child.version == 8
    assert child.variant == uuid.RFC_4122
    assert ids.child_id(*hop) == str(child)


@pytest.mark.rule("4.child-ids")
@given(HOPS, HOPS)
def test_two_places_never_share_an_id(
    one: tuple[str, int, int, int | str], other: tuple[str, int, int, int | str]
) -> None:
    assert (ids.child_id(*one) == ids.child_id(*other)) == (one == other)


def test_different_parts_never_give_the_same_id() -> None:
    assert ids.child_id("a", 1, 11, 1) != ids.child_id("a", 11, 1, 1)
    assert len({ids.child_id("a", 0, 0, 1), ids.hook_id("a", 0, "child"), ids.id_of_message("a")}) == 3


@pytest.mark.rule("1.id")
def test_an_id_has_1_to_256_bytes() -> None:
    for value, usable in (
        ("", False),
        ("x", True),
        ("x" * 256, True),
        ("x" * 257, False),
        ("ü" * 129, False),
        (7, False),
    ):
        assert ids.is_usable(value) is usable


@pytest.mark.rule("1.id.special")
@pytest.mark.parametrize("key", SPECIAL_KEYS)
def test_the_key_of_an_item_that_is_no_claim_is_no_id(key: str) -> None:
    """Who claims ends may not write such items, so the task would never end."""
    begin, is_prefix = key.removesuffix("*"), key.endswith("*")
    assert not ids.is_usable(begin)
    assert ids.is_usable(f"{begin}x") is not is_prefix
    assert ids.is_usable(begin.lower().replace("#", ""))


@pytest.mark.rule("1.id.characters")
@given(USABLE)
@examples(200, 5000)
def test_a_usable_id_is_one_part_of_a_path_whoever_decodes_it_and_an_argument(envelope_id: str) -> None:
    assert ids.is_usable(envelope_id)
    assert unquote(envelope_id) == envelope_id == unquote(quote(envelope_id, safe=""))
    for written in (quote(envelope_id, safe=""), envelope_id):
        parts = urlsplit(f"https://mesh/api/{written}/children")
        assert unquote(parts.path) == f"/api/{envelope_id}/children" == posixpath.normpath(unquote(parts.path))
    assert shlex.split(f"asya status {shlex.quote(envelope_id)}") == ["asya", "status", envelope_id]
    assert re.fullmatch("(?!-).*", envelope_id)


@pytest.mark.rule("1.id.characters")
@given(REFUSED)
@example("a\ud800")
@examples(200, 5000)
def test_any_other_id_is_refused_with_what_ids_may_have(envelope_id: str) -> None:
    problem = ids.problem_of(envelope_id)
    assert problem is not None
    assert problem.endswith(ids.ALLOWED) or envelope_id == "OUTAGE"
    assert problem.isprintable()
    assert not ids.is_usable(envelope_id)
