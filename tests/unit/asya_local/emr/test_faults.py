"""The faults that tests inject into the stand-in; a stand-in without a module of faults has none."""

from pathlib import Path

import pytest

from asya_local.emr.capacity import Limits
from asya_local.emr.faults import Faults, load_faults
from asya_local.emr.settings import EmrSettings
from tests.doubles import emr_faults

CHANCES = (
    *("lose_events", "repeat_events", "delay_events", "lose_responses", "repeat_calls", "delay_responses"),
    *("throttle", "no_capacity", "kill_runs", "lose_executors"),
)
LIMITS = Limits(max_vcpu=16, max_memory_gb=128, max_concurrent_runs=15)


def load(folder: Path, module: str) -> Faults:
    settings = EmrSettings(
        port=0,
        state=str(folder),
        mark="",
        aws_endpoint="",
        caller_endpoint="",
        python="",
        java_home="",
        spark_home="",
        temporary="",
        cache="",
        faults=module,
    )
    return load_faults(settings)


def decisions(faults: Faults) -> tuple[object, ...]:
    return (
        faults.event_delays(),
        faults.loses_response(),
        faults.kill_delay(),
        faults.throttles_call(),
        faults.exceeds_capacity(),
        faults.repeats_call(),
        faults.response_delay(),
        faults.executor_delay(),
        faults.executor_loss(),
    )


def test_the_same_seed_gives_the_same_faults(tmp_path: Path) -> None:
    faults = load(tmp_path, emr_faults.MODULE)

    def draw(seed: int) -> list[object]:
        emr_faults.inject(tmp_path, seed=seed, **dict.fromkeys(CHANCES, 0.5))
        return [decisions(faults) for _ in range(50)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


@pytest.mark.parametrize("module", ["", emr_faults.MODULE])
def test_without_a_plan_no_fault_occurs(tmp_path: Path, module: str) -> None:
    faults = load(tmp_path, module)
    assert {decisions(faults) for _ in range(100)} == {((0.0,), False, None, False, False, False, 0.0, 0.0, None)}
    assert faults.start_rate() == (1.0, 25)
    assert faults.limits(LIMITS) == LIMITS


def test_an_empty_plan_removes_all_faults(tmp_path: Path) -> None:
    faults = load(tmp_path, emr_faults.MODULE)
    emr_faults.inject(tmp_path, throttle=1, start_burst=0, starts_per_second=0.5, max_vcpu=4, max_concurrent_runs=1)
    assert faults.throttles_call()
    assert faults.start_rate() == (0.5, 0)
    assert faults.limits(LIMITS) == Limits(max_vcpu=4, max_memory_gb=128, max_concurrent_runs=1)
    emr_faults.inject(tmp_path, executor_seconds=3, lose_executors=1, lose_executors_after=2)
    assert (faults.executor_delay(), faults.executor_loss()) == (3, 2)
    emr_faults.inject(tmp_path)
    assert (faults.executor_delay(), faults.executor_loss()) == (0.0, None)
    assert not faults.throttles_call()
    assert faults.start_rate() == (1.0, 25)
    assert faults.limits(LIMITS) == LIMITS


def test_an_unknown_fault_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="lose_event"):
        emr_faults.inject(tmp_path, lose_event=1)


def test_a_module_without_faults_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="Faults"):
        load(tmp_path, "json")
