"""The cost of one hop, compared with decoding and encoding the same bytes with the standard library.

A hop includes the sidecar's work between two messages: decode, validate, stamp, shift, encode. The payload is either parsed
and encoded strictly, or relayed as bytes. The messages differ in id and times, and exceed the size of every cache.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import cycle
from uuid import UUID

from asya.function.hop import Arrival, Hop
from asya.protocol.envelope import Frame
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.strict_json import decode_untyped, encode_value
from asya.protocol.times import format_time
from asya.sidecar import arrival, outcome
from bench.side_by_side import Measurement, measure

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MESH = MeshTable(namespace="bench", actors={name: Actor(kind="handler") for name in ("prepare", "infer", "store")})
GOALS = {"payload parsed": 0.75, "payload relayed": 0.25}
SPAN = "b7ad6b7169203331"


def message(number: int = 0) -> bytes:
    """Return a message of 1.6 KB between two actors."""
    order = [{"article": f"A-{item:05}", "pieces": item % 7, "price": 9.5 + item} for item in range(24)]
    created = NOW - timedelta(minutes=1, microseconds=number)
    envelope = {
        "id": str(UUID(int=0x5B3D0C5E7D534B3E9C533C2A00000000 + number)),
        "route": {"prev": ["prepare"], "curr": "infer", "next": ["store"]},
        "headers": {"traceparent": f"00-0af7651916cd43dd8448eb21{number:08x}-{SPAN}-01", "tenant": "acme"},
        "status": {
            "phase": "pending",
            "actor": "infer",
            "attempt": 1,
            "max_attempts": 1,
            "created_at": format_time(created),
            "updated_at": format_time(created + timedelta(seconds=50)),
            "deadline_at": format_time(created + timedelta(minutes=5)),
        },
        "payload": {"customer": f"C-{number}", "order": order, "total": 465.25, "express": True, "note": None},
    }
    return json.dumps(envelope, separators=(",", ":")).encode()


def run() -> list[tuple[str, Measurement, float]]:
    """Measure; return name, measurement and ratio to the standard library of each candidate."""
    sent_at = NOW - timedelta(seconds=1)
    bodies = [message(number) for number in range(2000)]
    arrivals = cycle([Arrival(body=body, message_id="m", sent_at=sent_at, size=len(body)) for body in bodies])

    def standard_library() -> bytes:
        return json.dumps(json.loads(next(arrivals).body)).encode()

    def hop() -> Hop:
        received = arrival.receive(next(arrivals), actor="infer", mesh=MESH, now=NOW)
        started = arrival.start(received, None, now=NOW, new_span=lambda: SPAN)  # type: ignore[arg-type]
        if not isinstance(started, Hop):
            raise TypeError(f"the benchmark's envelope was diverted: {started}")
        return started

    def parsed() -> bytes:
        started = hop()
        payload = encode_value(decode_untyped(started.envelope.payload)[0])
        return outcome.frame(started, Frame(payload, alone=True), 0, now=NOW).body

    def relayed() -> bytes:
        started = hop()
        return outcome.frame(started, Frame(started.envelope.payload, alone=True), 0, now=NOW).body

    candidates = {"json.loads + json.dumps": standard_library, "payload parsed": parsed, "payload relayed": relayed}
    measurements = measure(candidates)
    base = measurements["json.loads + json.dumps"]
    return [(name, each, each.ratio(base)) for name, each in measurements.items()]
