"""protocol §11: the object metadata of a result names its envelope and its end."""

import pytest

from asya.ends.results import METADATA_LIMIT, result_metadata
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from tests.doubles.envelopes import message, status


@pytest.mark.rule("11.metadata")
def test_a_task_of_its_own() -> None:
    body = message(
        status=status(phase="succeeded", reason="Completed"),
        route={"prev": ["prep", "infer"], "curr": "", "next": []},
    )
    assert result_metadata(decode(body), "shop") == {
        "id": "env-1",
        "root": "env-1",
        "namespace": "shop",
        "generation": "0",
        "phase": "succeeded",
        "last-actor": "infer",
    }


def test_a_child_of_a_redriven_task_that_failed() -> None:
    envelope = child("child-1", "parent-1", "root-1", status=status(phase="failed"), generation=2)
    told = result_metadata(envelope, "shop")
    assert (told["id"], told["parent"], told["root"]) == ("child-1", "parent-1", "root-1")
    assert (told["phase"], told["generation"]) == ("failed", "2")


@pytest.mark.parametrize(
    ("given", "told"),
    [("order 7", "order%207"), ("größe", "gr%C3%B6%C3%9Fe"), ("a\u200bb", "a%E2%80%8Bb"), ("a:b", "a:b")],
)
def test_what_no_http_header_can_hold_is_percent_encoded(given: str, told: str) -> None:
    assert result_metadata(decode(message(id=given)), "shop")["id"] == told


@pytest.mark.rule("11.metadata")
@pytest.mark.parametrize("letter", ["i", "ß", "日", "😀"])
def test_ids_as_long_as_they_may_be_stay_within_what_s3_takes(letter: str) -> None:
    long = letter * (256 // len(letter.encode()))
    told = result_metadata(child(long, long, long), "shop")
    assert sum(len(name) + len(value) for name, value in told.items()) <= METADATA_LIMIT
    assert told["id"]
    assert told["phase"]


def child(envelope_id: str, parent: str, root: str, *, generation: int = 0, **members: object) -> Envelope:
    headers = {"x-asya-root": root} | ({"x-asya-generation": generation} if generation else {})
    return decode(message(id=envelope_id, parent_id=parent, headers=headers, **members))
