"""The report of a chaos run: one HTML page with the verdict, the timeline of faults and ends, and the tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from tests.chaos.memory import BOUND, MIB, SHARE, WARM_UP_SECONDS
from tests.chaos.memory_chart import draw_memory
from tests.chaos.timeline import draw_timeline
from tests.chaos.violation import totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.chaos.accounts import Evidence
    from tests.chaos.diagnosis import Diagnosis
    from tests.chaos.envelopes import ChaosEnvelope
    from tests.chaos.event_log import Event
    from tests.chaos.memory import Growth
    from tests.chaos.processes import MemorySample
    from tests.chaos.schedule import Size
    from tests.chaos.violation import Violation

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
th{border-bottom:1px solid #999;font-weight:600}td.n,th.n{text-align:right}.good{color:#176b2c}.bad{color:#b00020}
pre{background:#f5f5f5;padding:.7rem;overflow:auto;font-size:12px}svg{width:100%;height:auto}"""
_LISTED = 40


@dataclass(frozen=True)
class Run:
    """Everything that the report says."""

    seed: int
    size: Size
    command: str
    commit: str
    machine: str
    envelopes: Sequence[ChaosEnvelope]
    evidence: Evidence
    accounted: int
    violations: Sequence[Violation]
    diagnoses: Sequence[Diagnosis]
    started: Mapping[str, float]
    """When each envelope was accepted, by name."""
    events: Sequence[Event]
    seconds: float
    """From the beginning of the load to the rest of all queues."""
    growths: Sequence[Growth]
    memory: Sequence[MemorySample]
    calls: Mapping[str, int]
    """What the fault proxy counted."""
    runs: Mapping[str, int]
    """Job runs by state."""

    @property
    def verdict(self) -> str:
        """The result in one line."""
        kinds = ", ".join(f"{count} × {kind}" for kind, count in totals(self.violations).items())
        return f"{self.accounted} of {len(self.envelopes)} accounted for; {kinds or 'no violation'}"


def render(run: Run) -> str:
    """The page."""
    mood = "bad" if run.violations else "good"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Chaos</title>",
        f"<style>{_STYLE}</style><h1>Chaos</h1><p class={mood}><strong>{escape(run.verdict)}</strong></p>",
        _table((), _facts(run)),
        f"<h2>Timeline</h2>{draw_timeline(run.events, run.started.values(), _ends(run), run.seconds)}",
        f"<h2>Envelopes</h2>{_table(('flow', 'started', 'ended', 'accepted → object, median', 'longest'), _flows(run))}",
        f"<h2>Faults</h2>{_table(('fault', 'count'), _faults(run))}",
        f"<h2>Memory</h2>{draw_memory(run.memory, run.seconds)}{_memory(run.growths)}",
        *_findings(run),
    ]
    return "\n".join(parts) + "</html>\n"


def _facts(run: Run) -> list[tuple[str, str]]:
    effects = run.evidence.effects
    repeated = sum(count > 1 for count in effects.values())
    sightings = [seen for source in run.evidence.sightings for seen in source.values()]
    return [
        ("command", run.command),
        ("commit", run.commit),
        ("machine", run.machine),
        ("time", f"{run.size.load_seconds:.0f} s with faults; everything at rest after {run.seconds:.0f} s"),
        ("gateway", f"stopped for {run.size.outage_seconds:.0f} s"),
        ("tasks", f"{len(run.evidence.records)}, slices included"),
        ("effects of handlers", f"{len(effects)}; {repeated} more than once, because delivery is at least once"),
        ("statuses", f"{len(sightings)} tasks watched, {sum(map(len, sightings))} different readings"),
        ("streams", f"{len(run.evidence.finals)} followed to their final event"),
        ("superseded results", f"{run.evidence.superseded}, kept beside the ends that hold"),
        ("timers", f"{run.evidence.timers} delayed checks of sets that are closed"),
        ("job runs", ", ".join(f"{count} {state}" for state, count in sorted(run.runs.items())) or "none"),
    ]


def _ends(run: Run) -> list[float]:
    names = set(run.evidence.ids.values())
    return [each.at for name, objects in run.evidence.objects.items() if name in names for each in objects[:1]]


def _flows(run: Run) -> list[tuple[str, ...]]:
    rows = []
    for flow in dict.fromkeys(each.flow for each in run.envelopes):
        own = [each for each in run.envelopes if each.flow == flow]
        seconds = []
        for each in own:
            objects = run.evidence.objects.get(run.evidence.ids.get(each.name, ""), ())
            seconds += [objects[0].at - run.started[each.name]] if objects and each.name in run.started else []
        seconds.sort()
        times = (f"{seconds[len(seconds) // 2]:.0f} s", f"{seconds[-1]:.0f} s") if seconds else ("", "")
        rows.append((flow, str(sum(each.name in run.started for each in own)), str(len(seconds)), *times))
    return sorted(rows)


def _faults(run: Run) -> list[tuple[str, str]]:
    kinds = {"worker": "Lambda workers killed", "driver": "Spark drivers killed", "gateway": "stops of the gateway"}
    counts = Counter(event.kind for event in run.events)
    rows = [(text, str(counts[kind])) for kind, text in kinds.items()]
    rows += [(f"outages of {service}", str(counts[service])) for service in ("s3", "dynamodb", "sqs")]
    return rows + [(name, str(count)) for name, count in sorted(run.calls.items()) if not name.startswith(": ")]


def _memory(growths: Sequence[Growth]) -> str:
    text = (
        f"After its first {WARM_UP_SECONDS:.0f} s, a process may grow by {BOUND // MIB} MiB or {SHARE:.0%} "
        "in the second half of its life. "
        "MiniStack itself keeps all data of the run in memory, so it is shown and not judged."
    )
    worst: dict[str, Growth] = {}
    for each in growths:
        worst.setdefault(each.function or each.part, each)
    rows = [
        (
            name,
            f"{each.first / MIB:.0f}",
            f"{each.last / MIB:.0f}",
            f"{each.seconds:.0f} s",
            "" if each.is_flat else "grows",
        )
        for name, each in worst.items()
    ]
    head = ("process with the largest growth", "MiB in the middle", "MiB at the end", "over", "")
    return f"<p>{text}</p>{_table(head, rows)}"


def _findings(run: Run) -> Iterable[str]:
    if not run.violations:
        return
    yield "<h2 class=bad>Violations</h2><ol>"
    yield from (f"<li>{escape(str(each))}</li>" for each in run.violations[:_LISTED])
    yield "</ol>"
    if len(run.violations) > _LISTED:
        yield f"<p>and {len(run.violations) - _LISTED} more</p>"
    for each in run.diagnoses:
        yield f"<h3>{escape(str(each.violation.kind))}: {escape(each.violation.envelope_id)}</h3>"
        yield f"<pre>$ {escape(each.command)}\n{escape(each.output)}</pre>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; with a head, all columns but the first hold numbers."""
    number = " class=n" if head else ""

    def line(cells: Sequence[str], tag: str) -> str:
        first, *others = cells
        return f"<tr><{tag}>{escape(first)}</{tag}>{''.join(f'<{tag}{number}>{escape(each)}</{tag}>' for each in others)}</tr>"

    lines = ([line(head, "th")] if head else []) + [line(row, "td") for row in rows]
    return f"<table>{''.join(lines)}</table>"
