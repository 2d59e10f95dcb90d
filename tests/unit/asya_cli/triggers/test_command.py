"""`asya trigger` over a mesh in memory."""

import json

import pytest

from asya.protocol import names
from asya.testing.messages import put
from tests.doubles.command_line import asya
from tests.doubles.kit_cloud import KitCloud


def test_triggers_are_listed_in_80_columns(cloud: KitCloud) -> None:
    asya("trigger", "fire", "nightly", "--at", "2026-11-25T02:00")
    cloud.kit.cloud.run_until_idle()
    first, *lines = asya("trigger", "list").stdout.splitlines()
    assert first.split() == ["trigger", "source", "is", "last", "slot", "task", "next", "slot"]
    assert lines[2].split()[:8] == ["nightly", "cron", "on", "2026-11-25", "02:00", "+01", "succeeded", "2026-11-26"]
    assert lines[4].split()[:3] == ["silent", "cron", "off"]
    assert all(len(line) <= 80 for line in lines)
    views = [json.loads(line) for line in asya("trigger", "list", "--json").stdout.splitlines()]
    assert [view["name"] for view in views] == ["gathered", "landed", "nightly", "pushed", "silent", "waiting"]


@pytest.mark.rule("16.calls.show")
def test_16_a_trigger_shows_its_slots_and_what_it_started(cloud: KitCloud) -> None:
    """In the zone of its schedule."""
    fired = asya("trigger", "fire", "nightly", "--at", "2026-11-25T02:00").stdout.strip()
    cloud.kit.cloud.run_until_idle()
    shown = asya("trigger", "show", "nightly").stdout
    assert "nightly  on" in shown
    assert "0 2 * * * in Europe/Oslo" in shown
    assert f"2026-11-25 02:00 +01  succeeded  {fired}" in shown
    assert "next      2026-11-26 02:00 +01" in shown
    assert shown.count(fired) == 2
    assert "started by  trigger nightly, slot 2026-11-25T01:00:00Z" in asya("status", fired).stdout
    assert json.loads(asya("trigger", "show", "nightly", "--json").stdout)["last"]["status"] == "succeeded"


@pytest.mark.rule("16.calls.show")
def test_16_a_trigger_shows_which_objects_and_events_it_asks_for(cloud: KitCloud) -> None:
    assert "  source    s3 data: raw/*.csv\n" in asya("trigger", "show", "landed").stdout
    shown = asya("trigger", "show", "waiting").stdout
    assert '  source    event {"source": ["shop"], "detail-type": ["Asked"]} on the bus default\n' in shown
    assert json.loads(asya("trigger", "show", "landed", "--json").stdout)["objects"]["prefix"] == "raw/"
    assert cloud.kit.runs() == ()


@pytest.mark.rule("16.calls.show.waits")
def test_16_a_trigger_shows_what_waits_and_its_url(cloud: KitCloud) -> None:
    for name in ("waiting", "gathered"):
        for number in range(3):
            event = {"id": f"{name}-{number}", "time": "2026-11-25T12:00:00Z", "detail": {"number": number}}
            body = json.dumps({"trigger": name, "event": {"source": "shop", "detail-type": "Asked", **event}})
            put(cloud.kit.cloud, names.TRIGGERS, body, sender="AIDAEVENTS")
    cloud.kit.cloud.advance(20)
    [first] = cloud.kit.runs()
    assert (
        f"overlap   queue\n  running   {first.id}\n  queued    2 starts\n" in asya("trigger", "show", "waiting").stdout
    )
    assert "  window    3 occurrences, closes 2026-11-25 12:35 +00\n" in asya("trigger", "show", "gathered").stdout
    url = json.loads(asya("trigger", "show", "pushed", "--json").stdout)["url"]
    assert f"  url       {url}\n" in asya("trigger", "show", "pushed").stdout


@pytest.mark.rule("16.pause")
def test_16_a_trigger_is_paused_and_resumed(cloud: KitCloud) -> None:
    """What to type next is said."""
    paused = asya("trigger", "pause", "nightly").stdout
    assert "nightly is paused; `asya trigger resume nightly --state .asya` lets it go on" in paused
    assert "nightly  paused" in asya("trigger", "show", "nightly").stdout
    assert asya("trigger", "resume", "nightly").stdout == "nightly goes on; its next slot is 2026-11-26 02:00 +01\n"
    assert "is off, as the mesh file says" in asya("trigger", "resume", "silent").stdout
    assert json.loads(asya("trigger", "pause", "nightly", "--json").stdout)["paused"]
    assert json.loads(asya("trigger", "resume", "nightly", "--json").stdout)["next"]
    assert cloud.kit.runs() == ()


@pytest.mark.rule("16.fire")
def test_16_each_command_without_a_slot_starts_a_task(cloud: KitCloud) -> None:
    """With --at, a slot starts once."""
    ids = [json.loads(asya("trigger", "fire", "nightly", "--json").stdout)["id"] for _ in range(2)]
    ids += [asya("trigger", "fire", "nightly", "--at", "2026-11-25T02:00").stdout.strip() for _ in range(2)]
    cloud.kit.cloud.run_until_idle()
    assert {run.id for run in cloud.kit.runs()} == set(ids)
    assert len(set(ids)) == 3


def test_errors_name_what_was_meant(cloud: KitCloud) -> None:
    outcome = asya("trigger", "show", "nightli")
    assert (outcome.code, outcome.stdout) == (5, "")
    assert "the mesh 'shop' has no trigger 'nightli'" in outcome.stderr
    assert "Its triggers are: gathered, landed, nightly, pushed, silent, waiting." in outcome.stderr
    for arguments, problem in (
        (("fire", "nightly", "--at", "2026-11-25T03:00"), "no slot of '0 2 * * *' in Europe/Oslo"),
        (("fire", "silent"), "the trigger 'silent' is off"),
        (("pause", "nope"), "has no trigger 'nope'"),
    ):
        outcome = asya("trigger", *arguments)
        assert outcome.code != 0
        assert problem in outcome.stderr
        assert "Traceback" not in outcome.stderr
    assert cloud.kit.runs() == ()
