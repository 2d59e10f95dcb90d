"""What the mesh itself costs per hop, against reading and writing the same bytes with the standard library.

One hop is everything between a message and the next: decode, validate, stamp, shift, encode; with the payload parsed for a handler
and what it gave back written strictly, or carried as the bytes it came in.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from asya.protocol.frame import Frame
from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.strict_json import decode_value, encode_value
from asya.routing import arrival, outcome
from asya.routing.hop import Arrival, Hop
from bench.side_by_side import Measured, measure

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MESH = MeshTable(namespace="bench", actors={name: Actor(kind="handler") for name in ("prepare", "infer", "store")})
GOALS = {"payload parsed": 0.6, "payload relayed": 0.25}


def message() -> bytes:
    """An envelope of 1.6 KB as it travels between two actors."""
    order = [{"article": f"A-{number:05}", "pieces": number % 7, "price": 9.5 + number} for number in range(22)]
    envelope = {
        "id": "5b3d0c5e-7d53-4b3e-9c53-3c2a0f1de0aa",
        "route": {"prev": ["prepare"], "curr": "infer", "next": ["store"]},
        "headers": {
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "tenant": "acme",
        },
        "status": {
            "phase": "pending",
            "actor": "infer",
            "attempt": 1,
            "max_attempts": 1,
            "created_at": "2026-01-02T03:04:00.000000Z",
            "updated_at": "2026-01-02T03:04:04.000000Z",
            "deadline_at": "2026-01-02T03:09:00.000000Z",
        },
        "payload": {"customer": "C-42", "order": order, "total": 465.25, "express": True, "note": None},
    }
    return json.dumps(envelope, separators=(",", ":")).encode()


def run() -> list[tuple[str, Measured, float]]:
    """Measure; name, result and ratio to the standard library for each way."""
    body = message()
    came = Arrival(body=body, message_id="m", sent_at=NOW - timedelta(seconds=1), size=len(body))

    def standard_library() -> bytes:
        return json.dumps(json.loads(body)).encode()

    def hop() -> Hop:
        received = arrival.receive(came, actor="infer", mesh=MESH, now=NOW)
        started = arrival.start(received, None, now=NOW, new_span=lambda: "b7ad6b7169203331")  # type: ignore[arg-type]
        if not isinstance(started, Hop):
            raise TypeError(f"the benchmark's envelope was diverted: {started}")
        return started

    def parsed() -> bytes:
        started = hop()
        payload = encode_value(decode_value(started.envelope.payload))
        return outcome.frame(started, Frame(payload), 0, now=NOW).body

    def relayed() -> bytes:
        started = hop()
        return outcome.frame(started, Frame(started.envelope.payload), 0, now=NOW).body

    ways = {"json.loads + json.dumps": standard_library, "payload parsed": parsed, "payload relayed": relayed}
    measured = measure(ways)
    base = measured["json.loads + json.dumps"]
    return [(name, one, one.ratio(base)) for name, one in measured.items()]
