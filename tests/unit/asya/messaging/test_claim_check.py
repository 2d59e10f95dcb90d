"""protocol §4: an envelope too large for its headers goes to x-sump, unmanaged headers dropped."""

import pytest

from asya.messaging.claim_check import reduced_for_sump
from asya.protocol.codec import decode
from tests.doubles.envelopes import message, status


@pytest.mark.rule("4.too-large-for-its-headers")
def test_unmanaged_headers_go_first_then_the_route_too() -> None:
    managed = {"x-asya-root": "env-0", "x-asya-pause": "p" * 5000}
    body = message(headers={"mine": "x"} | managed, other="key", status=status(attempt=2, own="y"))
    envelope = decode(body)
    first, last = reduced_for_sump(envelope, "it has 2 bytes; 1 at most")
    assert set(first.headers) == set(managed)
    assert first.route == envelope.route
    assert set(last.headers) == {"x-asya-root"}
    assert (last.route.prev, last.route.curr, last.route.next) == ((), "x-sump", ())
    assert (last.extra, last.status_extra) == ({}, {})
    for reduced in (first, last):
        assert (reduced.id, bytes(reduced.payload)) == (envelope.id, bytes(envelope.payload))
        assert reduced.status is not None
        assert (reduced.status.phase, reduced.status.reason, reduced.status.attempt) == ("failed", "RuntimeError", 2)
        assert reduced.status.error is not None
        assert reduced.status.error.message.startswith("it has 2 bytes; 1 at most; its headers")
