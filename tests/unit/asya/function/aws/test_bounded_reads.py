"""Objects that code of users has written are read up to a limit."""

import io

import pytest

from asya.function.aws.bounded_reads import largest_payload, largest_set, read_at_most


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (9, 9), (10, 10), (11, None), (1000, None)])
def test_a_body_above_the_limit_is_none(size: int, expected: int | None) -> None:
    body = io.BytesIO(b"x" * size)
    content = read_at_most(body, 10)
    assert (None if content is None else len(content)) == expected
    assert body.tell() <= 11


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("512", (87_241_523, 62_315_373)),
        ("128", (6_710_886, 4_793_490)),
        ("64", (0, 0)),
        ("", (None, None)),
        ("?", (None, None)),
    ],
)
def test_the_largest_payload_is_a_share_of_the_memory(
    memory: str, expected: tuple[int | None, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", memory)
    assert (largest_payload(), largest_set()) == expected
