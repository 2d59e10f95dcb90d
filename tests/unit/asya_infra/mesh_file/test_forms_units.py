"""Durations and sizes: their forms, their values, and the messages of other text."""

import pytest

from asya_infra.mesh_file.forms import format_duration, parse_bytes, parse_duration
from tests.unit.asya_infra.mesh_file.loading import light_actor_problems


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("30s", 30.0), ("10m", 600.0), ("2h", 7200.0), ("7d", 604800.0), ("0s", 0.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "3", "-3s", "3 s", "1.5h", "3S", "s", 3, None, True, "１s"])
def test_invalid_durations(text: object) -> None:
    with pytest.raises(ValueError, match="should be a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"), [(512, 512 * 2**20), ("512", 512 * 2**20), ("4g", 4 * 2**30), ("256k", 2**18), ("1M", 2**20)]
)
def test_sizes(text: object, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("timeout: 30", "4: actors.a.timeout: should be a duration such as 500ms, 30s, 10m, 2h or 7d; got 30"),
        ("timeout: soon", "4: actors.a.timeout: should be a duration such as 500ms, 30s, 10m, 2h or 7d; got 'soon'"),
        ("memory: lots", "4: actors.a.memory: should be a size such as 512 (megabytes), 256k or 4g; got 'lots'"),
    ],
)
def test_messages(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]
