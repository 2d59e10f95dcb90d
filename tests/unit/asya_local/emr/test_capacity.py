import pytest

from asya_local.emr.capacity import Limits, Size, fits, gigabytes, size_of
from asya_local.emr.faults import Faults, Misfortune
from asya_local.emr.tokens import ClientTokens, TokenBucket, TokenMismatchError


def test_a_burst_and_then_one_token_a_second() -> None:
    bucket = TokenBucket(per_second=1, burst=3)

    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(100.5)
    assert bucket.take(101.0)
    assert [bucket.take(1000.0) for _ in range(4)] == [True, True, True, False]


def test_a_bucket_that_never_fills() -> None:
    bucket = TokenBucket(per_second=0, burst=0)
    assert not bucket.take(0)
    assert not bucket.take(1e9)


def test_client_tokens() -> None:
    tokens = ClientTokens()
    assert tokens.find("t", "a") is None
    tokens.save("t", "a", "run")
    assert tokens.find("t", "a") == "run"
    with pytest.raises(TokenMismatchError):
        tokens.find("t", "b")


@pytest.mark.parametrize(
    ("conf", "size"),
    [
        ({}, Size(16, 56, 80)),
        ({"spark.dynamicAllocation.initialExecutors": "1"}, Size(8, 28, 40)),
        ({"spark.dynamicAllocation.maxExecutors": "2"}, Size(12, 42, 60)),
        ({"spark.dynamicAllocation.enabled": "false", "spark.executor.instances": "2"}, Size(12, 42, 60)),
        (
            {
                "spark.driver.cores": "1",
                "spark.driver.memory": "2g",
                "spark.executor.cores": "1",
                "spark.executor.memory": "2048m",
                "spark.dynamicAllocation.initialExecutors": "2",
            },
            Size(3, 6, 60),
        ),
    ],
)
def test_the_size_of_a_run(conf: dict[str, str], size: Size) -> None:
    assert size_of(conf) == size


@pytest.mark.parametrize(
    ("text", "amount"), [("2g", 2), ("512m", 0.5), ("1024", 1), ("1tb", 1024), (None, 7), ("x", 7)]
)
def test_memory_as_spark_writes_it(text: str | None, amount: float) -> None:
    assert gigabytes(text, 7) == amount


def test_what_fits() -> None:
    limits, small = Limits(max_vcpu=16, max_memory_gb=128, max_concurrent_runs=2), Size(6, 12, 20)

    assert fits(small, [small], limits)
    assert not fits(small, [small, small], limits)  # concurrency
    assert not fits(Size(12, 12, 20), [small], limits)  # vCPU
    assert not fits(Size(6, 120, 20), [small], limits)  # memory
    assert fits(Size(64, 500, 20), [], limits)  # alone


CHANCES = (
    *("lose_events", "repeat_events", "delay_events", "lose_responses", "repeat_calls", "delay_responses"),
    *("throttle", "no_room", "kill_runs"),
)


def test_the_same_seed_gives_the_same_misfortune() -> None:
    def fates(seed: int) -> list[object]:
        misfortune = Misfortune()
        misfortune.switch(Faults(seed=seed, **dict.fromkeys(CHANCES, 0.5)))
        return [
            (
                misfortune.event_fate(),
                misfortune.loses_response(),
                misfortune.kill_after(),
                misfortune.throttles(),
                misfortune.has_no_room(),
                misfortune.repeats_call(),
                misfortune.response_delay(),
            )
            for _ in range(50)
        ]

    assert fates(1) == fates(1)
    assert fates(1) != fates(2)


def test_without_faults_every_event_is_sent_once_at_once() -> None:
    misfortune = Misfortune()
    assert all(misfortune.event_fate().delays == (0.0,) for _ in range(100))
    assert not misfortune.loses_response()
    assert not misfortune.throttles()
    assert not misfortune.has_no_room()
    assert not misfortune.repeats_call()
    assert misfortune.response_delay() == 0
    assert misfortune.kill_after() is None


def test_unknown_faults_are_refused() -> None:
    with pytest.raises(ValueError, match="lose_event is no fault"):
        Faults.read({"lose_event": 1})
    with pytest.raises(ValueError, match="must be a number"):
        Faults.read({"lose_events": "often"})
