"""protocol §3 (managed headers, trace), §5.11 (durations), §13 (progress), §1 and §4 (names)."""

import pytest

from asya.protocol import headers, names
from asya.protocol.envelope import Route, progress_percent
from asya.protocol.times import format_duration

SPAN = "00000000000000aa"
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.rule("3.managed")
@pytest.mark.parametrize(
    ("name", "managed"),
    [
        ("x-asya-root", True),
        ("x-asya-anything", True),
        ("traceparent", True),
        ("tracestate", True),
        ("trace_id", False),
    ],
)
def test_protocol_3_managed_headers(name: str, managed: bool) -> None:
    assert headers.is_managed(name) is managed


@pytest.mark.rule("5.11.words")
@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (300, "5m0s"),
        (30, "30s"),
        (5400, "1h30m0s"),
        (0.25, "250ms"),
        (1.5, "1.5s"),
        (90.25, "1m30.25s"),
        (3600, "1h0m0s"),
    ],
)
def test_protocol_5_11_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.rule("13.progress")
def test_protocol_13_progress_of_three_actors() -> None:
    actors = ("a", "b", "c")
    percentages = [
        progress_percent(Route(actors[:n], actors[n], actors[n + 1 :]), stage)
        for n in range(3)
        for stage in ("received", "processing", "completed")
    ]
    assert percentages == [10, 15, 33, 43, 48, 66, 76, 81, 99]


@pytest.mark.rule("1.names")
@pytest.mark.parametrize(
    ("name", "ok"), [("infer", True), ("a", True), ("a-1", True), ("x" * 63, True), ("x" * 64, False)]
)
def test_protocol_1_labels(name: str, ok: bool) -> None:
    if ok:
        assert names.check_label(name, "actor") == name
        return
    with pytest.raises(ValueError, match="actor name"):
        names.check_label(name, "actor")


@pytest.mark.rule("1.names")
@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a_b", "a.b", "é", "a/b", "a\n"])
def test_protocol_1_no_labels(name: str) -> None:
    with pytest.raises(ValueError, match="actor name"):
        names.check_label(name, "actor")


@pytest.mark.rule("1.reserved")
def test_protocol_1_reserved_names() -> None:
    for name in ("x-sink", "x-sump", "x-dispatch", "x-anything", "happy-end", "error-end"):
        assert names.is_reserved(name)
        assert not names.is_routable(name)
    for name in ("x-pause", "x-resume", "x-checkpoint", "x-fan-in", "infer"):
        assert names.is_routable(name)
