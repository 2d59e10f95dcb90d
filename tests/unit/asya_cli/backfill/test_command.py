"""`asya backfill` over a mesh in memory."""

import json
from collections.abc import Iterator

import pytest

from asya_cli.clock import using
from tests.doubles.command_clock import SetClock
from tests.doubles.command_line import asya
from tests.doubles.kit_cloud import KitCloud

RANGE = ("nightly", "--from", "2026-11-01", "--to", "2026-11-05")


@pytest.fixture(autouse=True)
def clock(cloud: KitCloud) -> Iterator[None]:
    """The wait between two questions is a minute of the mesh."""
    with using(SetClock(lambda: cloud.kit.now, on_sleep=lambda _: cloud.kit.travel(minutes=1))):
        yield


@pytest.mark.rule("16.backfill")
def test_16_a_backfill_is_followed_to_its_end(cloud: KitCloud) -> None:
    """The name of a trigger alone starts it, and `start` with a name that is a command's."""
    outcome = asya("backfill", *RANGE, "--at-once", "2", "--follow")
    assert outcome.code == 0
    assert "done" in outcome.stdout
    assert "2026-11-01 00:00 +01 to 2026-11-05 23:59 +01" in outcome.stdout
    assert "5 of 5 slots, 5 succeeded" in outcome.stdout
    assert len(cloud.kit.runs()) == 5
    assert asya("backfill", "start", *RANGE, "--follow", "--json").code == 0
    assert len(cloud.kit.runs()) == 5


@pytest.mark.rule("16.backfill")
def test_16_a_dry_run_counts(cloud: KitCloud) -> None:
    """And starts nothing."""
    counted = "5 slots from 2026-11-01 00:00 +01 to 2026-11-05 23:59 +01; nothing was started\n"
    assert asya("backfill", *RANGE, "--dry-run").stdout == counted
    assert json.loads(asya("backfill", *RANGE, "--dry-run", "--json").stdout)["total"] == 5
    assert asya("backfill", "list").stderr == "no backfills\n"
    assert cloud.kit.runs() == ()


@pytest.mark.rule("16.backfill.stop")
def test_16_a_stopped_backfill_is_shown_and_resumed(cloud: KitCloud) -> None:
    """With what failed."""
    cloud.kit.fail("greet", ValueError("no such day"), times=2)
    begun = asya("backfill", *RANGE, "--stop-after", "2")
    backfill = begun.stdout.strip()
    assert f"`asya backfill show {backfill} --follow --state .asya`" in begun.stderr
    shown = asya("backfill", "show", backfill, "--follow")
    assert shown.code == 3
    assert "stopped" in shown.stdout
    assert "  progress    2 of 5 slots, 0 succeeded, 2 failed\n" in shown.stdout
    assert "  stop after  2 failures\n" in shown.stdout
    assert shown.stdout.count("ValueError: no such day") == 2
    lines = asya("backfill", "list").stdout.splitlines()
    assert lines[1].split() == [backfill, "nightly", "stopped", "2/5", "2"]
    assert all(len(line) <= 80 for line in lines)
    assert asya("backfill", "resume", backfill).stdout == f"{backfill}: running\n"
    assert asya("backfill", "show", backfill, "--follow").code == 3
    ended = json.loads(asya("backfill", "show", backfill, "--json").stdout)
    assert (ended["state"], ended["succeeded"], ended["failed"]) == ("done", 3, 2)
    assert json.loads(asya("backfill", "resume", backfill, "--json").stdout)["state"] == "done"
    assert [json.loads(line)["id"] for line in asya("backfill", "list", "--json").stdout.splitlines()] == [backfill]


@pytest.mark.rule("16.backfill.cancel")
def test_16_a_backfill_is_canceled(cloud: KitCloud) -> None:
    """Its running task too; the exit code of a follower says so."""
    cloud.kit.cloud.sources.functions.pop("asya-shop-greet")
    backfill = asya("backfill", *RANGE).stdout.strip()
    cloud.kit.cloud.advance(10)
    assert "2026-11-01 02:00 +01  pending" in asya("backfill", "show", backfill).stdout
    assert asya("backfill", "cancel", backfill).stdout == f"{backfill}: canceled\n"
    assert asya("backfill", "show", backfill, "--follow").code == 3
    assert {run.status for run in cloud.kit.runs()} == {"canceled"}
    assert json.loads(asya("backfill", "cancel", backfill, "--json").stdout)["state"] == "canceled"


def test_the_end_of_the_terminal_ends_nothing(cloud: KitCloud) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    cloud.kit.cloud.sources.functions.pop("asya-shop-greet")
    with using(SetClock(lambda: cloud.kit.now, on_sleep=interrupt)):
        outcome = asya("backfill", *RANGE, "--follow")
    assert outcome.code == 130
    assert "goes on. `asya backfill show " in outcome.stderr


def test_errors_say_what_to_type(cloud: KitCloud) -> None:
    for arguments, problem in (
        (("nope", "--from", "2026-11-01", "--to", "2026-11-02"), "has no trigger 'nope'"),
        (("nightly", "--from", "soon", "--to", "2026-11-02"), "from should be a time such as 2026-11-25"),
        (("nightly", "--from", "2026-11-01"), "missing option '--to'"),
        (("show", "nope"), "there is no backfill 'nope'"),
    ):
        outcome = asya("backfill", *arguments)
        assert outcome.code != 0
        assert problem in outcome.stderr
        assert "Traceback" not in outcome.stderr
    assert cloud.kit.runs() == ()
