"""Results that planted mistakes return in place of the real ones."""

from typing import Any

import msgspec

from asya.ends.aws.end_claims import Claim, ClaimResult
from asya.function.aws.receipt import Receipt
from asya.protocol.codec import decode, encode
from asya.protocol.envelope import Envelope


def skip_claim(_: Any, envelope: Envelope, **__: Any) -> ClaimResult:
    return ClaimResult(
        "taken", Claim(envelope.id, envelope.generation, "failed", f"sump/{envelope.id}.json"), envelope.generation
    )


def resolved(kind: str) -> Receipt:
    """The receipt of a message or report that was accepted."""
    receipt = Receipt(kind)
    receipt.resolve()
    return receipt


def change_headers(body: bytes, changes: dict[str, msgspec.Raw | None]) -> bytes:
    """An encoded envelope with other headers; None removes a header."""
    envelope = decode(body)
    new_headers = {name: value for name, value in (envelope.headers | changes).items() if value is not None}
    return encode(msgspec.structs.replace(envelope, headers=new_headers))
