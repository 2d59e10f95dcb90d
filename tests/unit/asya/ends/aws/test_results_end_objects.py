"""protocol §11: the first object of an end stays, and later writers learn what it holds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.ends.aws.results import EndObjects, KeyContestedError, Results
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from asya.testing.services.direct import MemoryS3
from tests.doubles.envelopes import message, raw, status

KEY = "succeeded/env-1.json"


@dataclass
class ContestedS3(MemoryS3):
    """An S3 on which something happens at each write.

    Attributes:
        on_put: called before each write; it may raise an error.
    """

    on_put: Callable[[], None] = lambda: None
    conditions: list[str] = field(default_factory=list)

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Write an object."""
        self.conditions += [name for name in ("IfNoneMatch", "IfMatch") if name in more]
        self.on_put()
        return super().put_object(Bucket=Bucket, Key=Key, Body=Body, **more)


def objects_of(s3: MemoryS3) -> tuple[EndObjects, list[float]]:
    pauses: list[float] = []
    return EndObjects(Results(s3, "s3://bucket/results/"), "shop", pauses.append), pauses  # type: ignore[arg-type]


def end(payload: object = 1, *, generation: int = 0, phase: str = "succeeded") -> Envelope:
    headers = {"x-asya-generation": generation} if generation else {}
    return decode(message(payload=payload, headers=headers, status=status(phase=phase)))


def error_of(code: str, http_status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": http_status}}
    return ClientError(answer, "PutObject")


def payload_of(s3: MemoryS3, key: str = f"results/{KEY}") -> bytes:
    return bytes(decode(s3.content(key)).payload)


@pytest.mark.rule("11.sink.first-object")
def test_the_first_object_stays_and_is_returned_byte_for_byte() -> None:
    s3 = MemoryS3()
    objects, _ = objects_of(s3)
    first = replace(end(), payload=raw({"a": [1, {"b": "x y"}]}))
    for envelope in (first, first, end(2)):
        stored = objects.write(KEY, envelope)
        assert stored is not None
        assert (stored.uri, bytes(stored.envelope.payload)) == (f"s3://bucket/results/{KEY}", bytes(first.payload))


@pytest.mark.rule("11.sink.first-object")
@pytest.mark.parametrize("before", [end(1), end(1, generation=1, phase="failed")])
def test_a_lower_generation_and_another_phase_are_replaced(before: Envelope) -> None:
    s3 = ContestedS3()
    objects, _ = objects_of(s3)
    objects.write(KEY, before)
    stored = objects.write(KEY, end(2, generation=1))
    assert stored is not None
    assert (payload_of(s3), bytes(stored.envelope.payload)) == (b"2", b"2")
    assert s3.conditions == ["IfNoneMatch", "IfNoneMatch", "IfMatch"]


@pytest.mark.rule("11.sink.first-object")
def test_a_higher_generation_stays() -> None:
    s3 = MemoryS3()
    objects, _ = objects_of(s3)
    objects.write(KEY, end(2, generation=1))
    assert objects.write(KEY, end(1)) is None
    assert payload_of(s3) == b"2"


@pytest.mark.rule("11.sink.first-object")
@pytest.mark.parametrize("foreign", [b"junk", b'{"id": 5}'])
def test_an_object_that_holds_no_end_is_replaced(foreign: bytes) -> None:
    s3 = MemoryS3()
    objects, _ = objects_of(s3)
    s3.put_object(Bucket="bucket", Key=f"results/{KEY}", Body=foreign)
    assert objects.write(KEY, end(2)) is not None
    assert payload_of(s3) == b"2"


@pytest.mark.rule("11.sink.first-object")
def test_a_conflict_is_tried_again_and_what_won_meanwhile_stays() -> None:
    s3 = ContestedS3()
    objects, pauses = objects_of(s3)

    def conflict() -> None:
        s3.on_put = lambda: None
        objects_of(s3)[0].write(KEY, end(7))
        raise error_of("ConditionalRequestConflict", 409)

    s3.on_put = conflict
    stored = objects.write(KEY, end(1))
    assert stored is not None
    assert (bytes(stored.envelope.payload), len(pauses)) == (b"7", 1)


@pytest.mark.rule("11.sink.first-object")
def test_an_object_that_is_deleted_before_it_is_replaced_is_written_anew() -> None:
    s3 = ContestedS3()
    objects, _ = objects_of(s3)
    objects.write(KEY, end(1))

    def delete() -> None:
        if s3.conditions[-1] == "IfMatch":
            s3.objects.clear()

    s3.on_put = delete
    assert objects.write(KEY, end(2, generation=1)) is not None
    assert payload_of(s3) == b"2"
    assert s3.conditions[-1] == "IfNoneMatch"


def test_an_object_that_keeps_changing_keeps_the_message() -> None:
    s3 = ContestedS3()
    objects, pauses = objects_of(s3)

    def conflict() -> None:
        raise error_of("ConditionalRequestConflict", 409)

    s3.on_put = conflict
    with pytest.raises(KeyContestedError):
        objects.write(KEY, end())
    assert len(pauses) == 5


@pytest.mark.rule("11.sink.failed-upload")
def test_the_answer_to_a_write_may_be_lost() -> None:
    s3 = ContestedS3()
    objects, _ = objects_of(s3)

    def lose() -> None:
        s3.on_put = lambda: None
        MemoryS3.put_object(
            s3, Bucket="bucket", Key=f"results/{KEY}", Body=message(payload=1, headers={}, status=status(phase="succeeded")),
            Metadata={"generation": "0", "phase": "succeeded"},
        )  # fmt: skip
        raise error_of("InternalError", 500)

    s3.on_put = lose
    stored = objects.write(KEY, end(1))
    assert stored is not None
    assert bytes(stored.envelope.payload) == b"1"


@pytest.mark.rule("11.sink.moved-object")
def test_an_object_of_an_earlier_generation_moves_and_one_of_a_later_stays() -> None:
    s3 = MemoryS3()
    objects, _ = objects_of(s3)
    objects.write(KEY, end(1, generation=1))
    objects.move_superseded(KEY, 0)
    objects.remove(KEY, 0)
    assert s3.keys() == [f"results/{KEY}"]
    objects.move_superseded(KEY, 1)
    (key,) = s3.keys()
    assert key.startswith("results/superseded/env-1/1/1-succeeded-")
    for missing in (objects.move_superseded, objects.remove):
        missing(KEY, 1)


@pytest.mark.rule("11.sink.claim")
def test_an_object_that_changed_since_it_was_read_is_not_deleted() -> None:
    s3 = MemoryS3()
    objects, _ = objects_of(s3)
    objects.write(KEY, end(1))

    def redrive(action: str, key: str) -> bool:
        if action == "delete":
            s3.fails = lambda *_: False
            objects.write(KEY, end(2, generation=1))
        return False

    s3.fails = redrive
    objects.remove(KEY, 0)
    assert payload_of(s3) == b"2"
