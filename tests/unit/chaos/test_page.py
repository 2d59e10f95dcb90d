"""Tests the report of a chaos run: verdict, timeline and what is known about violations."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from tests.chaos.accounts import Evidence, Record, Stored
from tests.chaos.diagnosis import Diagnosis
from tests.chaos.envelopes import draw_envelopes
from tests.chaos.event_log import Event
from tests.chaos.memory import MIB, Growth
from tests.chaos.memory_chart import draw_memory
from tests.chaos.page import Run, render
from tests.chaos.processes import MemorySample
from tests.chaos.schedule import Size
from tests.chaos.statuses import Sighting
from tests.chaos.timeline import WIDTH, draw_timeline
from tests.chaos.violation import Violation

ENVELOPES = draw_envelopes(3, 5, 100)
IDS = {each.name: each.name for each in ENVELOPES}
RUN = Run(
    seed=3,
    size=Size.of(5),
    command="make chaos SEED=3 ENVELOPES=5",
    commit="abc123",
    machine="2 cores",
    envelopes=ENVELOPES,
    evidence=Evidence(
        ids=IDS,
        records=dict.fromkeys(IDS, Record("succeeded")),
        objects={name: [Stored("succeeded", {}, 50.0)] for name in IDS},
        effects={("publish", "a"): 2, ("publish", "b"): 1},
        sightings=({"a": [Sighting(1, "running"), Sighting(2, "succeeded")]},),
    ),
    accounted=5,
    violations=[],
    diagnoses=[],
    started=dict.fromkeys(IDS, 10.0),
    events=[Event(20, "gateway", "the gateway is stopped", 30), Event(40, "worker", "worker of <price> killed")],
    seconds=120.0,
    growths=[Growth("worker", "asya-chaos-price", 7, 60, 90 * MIB, 95 * MIB)],
    memory=[
        MemorySample(at, part, "", 7, 90.0, 90 * MIB)
        for at in (0.0, 60.0)
        for part in ("worker", "worker", "fault proxy")
    ],
    calls={"s3: calls": 12, "s3: error": 1},
    runs={"SUCCESS": 3},
)


def test_the_page_of_a_good_run_says_so() -> None:
    page = render(RUN)
    assert "5 of 5 accounted for; no violation" in page
    assert "Violations" not in page
    for text in ("make chaos SEED=3", "abc123", "3 SUCCESS", "asya-chaos-price", "s3: error", "40 s"):
        assert text in page


def test_the_page_of_a_bad_run_names_the_envelope_and_the_command() -> None:
    violation = Violation("no end", "chaos-1 is <running>", "chaos-1")
    diagnosis = Diagnosis(violation, "asya status chaos-1", "running at price")
    page = render(replace(RUN, accounted=4, violations=[violation], diagnoses=[diagnosis]))
    assert "4 of 5 accounted for; 1 × no end" in page
    assert "chaos-1 is &lt;running&gt;" in page
    assert "$ asya status chaos-1\nrunning at price" in page


def test_the_timeline_shows_each_fault_at_its_time_and_counts_starts_and_ends() -> None:
    drawing = draw_timeline(RUN.events, [10.0] * 5, [50.0, 60.0], 120.0)
    assert "20 s: the gateway is stopped" in drawing
    assert "40 s: worker of &lt;price&gt; killed" in drawing
    boxes = list(ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}rect"))
    assert all(0 <= float(box.attrib["x"]) <= WIDTH and float(box.attrib["width"]) > 0 for box in boxes)
    assert "started: 5" in drawing
    assert "ended: 2" in drawing


def test_the_memory_of_all_workers_is_one_line() -> None:
    drawing = draw_memory(RUN.memory, 120.0)
    assert "up to 180 MiB" in drawing
    assert drawing.count("<polyline") == 2
