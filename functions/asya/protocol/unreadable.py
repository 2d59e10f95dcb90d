"""What can be read of a message that is no envelope (`protocol §5.1`)."""

import msgspec
from msgspec import Raw

from asya.protocol.envelope import NULL
from asya.protocol.headers import PAYLOAD_REF

_object_decoder = msgspec.json.Decoder(dict[str, Raw])
_headers_decoder: msgspec.json.Decoder[dict[str, Raw] | None] = msgspec.json.Decoder(dict[str, Raw] | None)
_value_decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder()


def readable_headers(body: bytes) -> dict[str, Raw]:
    """The headers that can be read all the same; none where there are none.

    But for the reference to a payload: it may be what is wrong, and what it names is no part of what is passed on.
    """
    try:
        body.decode("utf-8")
        headers = _headers_decoder.decode(_object_decoder.decode(body).get("headers", NULL))
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError):
        return {}
    return {name: raw for name, raw in (headers or {}).items() if name != PAYLOAD_REF and _is_readable(raw)}


def _is_readable(raw: Raw) -> bool:
    try:
        _value_decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
