"""protocol §6, `frames: buffered`: the list of frames is written once, and all runs use the first one."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.codec import decode
from asya.protocol.envelope import Frame
from asya.protocol.strict_json import encode_value
from asya.sidecar.aws.hop_records import FrameBuffer
from asya.testing.services.direct import MemoryS3
from tests.doubles.envelopes import message, raw
from tests.unit.asya.protocol.test_codec import JSON

ENVELOPE = decode(message(id="a b", headers={"x-asya-generation": 2}))
CHANGES = st.dictionaries(st.text(), st.none() | JSON.map(encode_value), max_size=3)
FRAMES = st.builds(
    Frame, JSON.map(encode_value), st.none() | st.lists(st.text(), max_size=3).map(tuple), CHANGES, CHANGES
)


def make(s3: MemoryS3) -> FrameBuffer:
    return FrameBuffer(s3, "mesh-bucket", "infer")  # type: ignore[arg-type]


@given(st.lists(FRAMES, max_size=4))
@pytest.mark.slow
def test_what_is_kept_comes_back_equal(frames: list[Frame]) -> None:
    s3 = MemoryS3()
    assert make(s3).save(ENVELOPE, frames) == frames
    assert make(s3).load(ENVELOPE) == frames
    assert s3.keys() == ["buffered/infer/a%20b/2/1.json"]


def test_nothing_kept_is_none_and_an_empty_list_is_a_list() -> None:
    s3 = MemoryS3()
    assert make(s3).load(ENVELOPE) is None
    make(s3).save(ENVELOPE, [])
    assert make(s3).load(ENVELOPE) == []


@pytest.mark.rule("6.buffered.re-run")
def test_the_first_writers_list_is_everybodys() -> None:
    s3 = MemoryS3()
    first, second = [Frame(raw(1))], [Frame(raw(2))]
    make(s3).save(ENVELOPE, first)
    assert make(s3).save(ENVELOPE, second) == first


@pytest.mark.parametrize("action", ["get", "put"])
def test_an_error_of_s3_is_raised(action: str) -> None:
    s3 = MemoryS3(fails=lambda found, key: found == action)
    calls: dict[str, Any] = {
        "get": lambda: make(s3).load(ENVELOPE),
        "put": lambda: make(s3).save(ENVELOPE, []),
    }
    with pytest.raises(ClientError):
        calls[action]()


@pytest.mark.rule("6.buffered.readers")
def test_a_fan_in_actor_reads_the_frames_of_another_actor() -> None:
    s3 = MemoryS3()
    make(s3).save(ENVELOPE, [Frame(raw(1))])
    own = FrameBuffer(s3, "mesh-bucket", "x-fan-in")  # type: ignore[arg-type]
    assert own.load(ENVELOPE) is None
    assert own.load(ENVELOPE, actor="infer") == [Frame(raw(1))]


FORMS = {"{}": b"{}", "[1]": b"[1]", "bytes": b"\xff", "depth": b"[" * 5000, "size": b"[" + b" " * (1 << 20) + b"]"}


@pytest.mark.rule("6.buffered.readers")
@pytest.mark.parametrize("form", [*FORMS, "GLACIER"])
def test_frames_that_code_of_another_actor_has_made_unreadable_count_as_none(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would come back at each start of the work on everybody's replays, or end the process by their size."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "97")
    s3 = MemoryS3()
    storage = {} if form in FORMS else {"StorageClass": form}
    s3.put_object(Bucket="mesh-bucket", Key="buffered/infer/a%20b/2/1.json", Body=FORMS.get(form, b"[]"), **storage)
    assert FrameBuffer(s3, "mesh-bucket", "x-fan-in").load(ENVELOPE, actor="infer") is None  # type: ignore[arg-type]
