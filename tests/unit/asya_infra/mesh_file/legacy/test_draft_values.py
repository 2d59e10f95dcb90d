"""Durations of Go and quantities of Kubernetes in legacy settings."""

from typing import Any

import pytest

from asya_infra.mesh_file.legacy.draft import as_cores, as_duration, as_megabytes


@pytest.mark.parametrize(
    ("text", "duration"),
    [("5m0s", "5m"), ("300s", "5m"), ("1h30m", "90m"), ("1.5s", "1500ms"), ("250ms", "250ms"), ("0s", "0s")],
)
def test_durations_of_go(text: str, duration: str) -> None:
    assert as_duration(text) == duration


@pytest.mark.parametrize("value", ["", "5", 5, "5m ", "m5", None, "-5s"])
def test_invalid_durations(value: Any) -> None:
    with pytest.raises(ValueError, match="should be a duration such as 5m0s"):
        as_duration(value)


def test_quantities_of_kubernetes() -> None:
    assert [as_megabytes(text) for text in ("64Mi", "1Gi", "1G", 128 * 2**20, "1.5Gi")] == [64, 1024, 954, 128, 1536]
    assert [as_cores(text) for text in ("200m", "0.5", 2)] == [0.2, 0.5, 2.0]
    for wrong in ("", "1X", True, None, "-1"):
        with pytest.raises(ValueError, match="should be an amount"):
            as_megabytes(wrong)
