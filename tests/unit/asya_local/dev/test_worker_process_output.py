"""What handlers print outside of calls."""

import io

from hypothesis import given
from hypothesis import strategies as st

from asya_local.dev.printed_lines import LEVEL
from asya_local.dev.worker_process import tell_lines


def told(output: bytes) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    tell_lines(io.BytesIO(output), lambda *entry: entries.append(entry))
    return entries


def test_each_line_is_told_of_a_handler() -> None:
    assert told(b"imported\n\n\xff\x1b[2J\rwhole\nopen") == [
        (LEVEL, "a handler: imported"),
        (LEVEL, "a handler: \\xff\x1b[2J\rwhole"),
        (LEVEL, "a handler: open"),
    ]


@given(st.binary())
def test_any_output_is_told_in_lines(output: bytes) -> None:
    assert len(told(output)) == len([line for line in output.split(b"\n") if line.strip()])
    assert all(text.startswith("a handler: ") and "\n" not in text for _, text in told(output))
