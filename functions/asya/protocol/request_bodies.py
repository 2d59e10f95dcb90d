"""Reads the JSON body of a gateway call as a typed request."""

from typing import TypeVar

import msgspec

from asya.protocol.api_errors import ApiError

T = TypeVar("T", bound=msgspec.Struct)


def read_body(body: bytes, kind: type[T]) -> T:
    """Read the body of a call; an empty one has no fields.

    Raises:
        ApiError: 400 if it is no JSON object of this form; names the field at fault.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        place = str(error).partition(" - at `$.")[2]
        raise ApiError(400, "invalid_field", f"the body has another form: {error}", place.rstrip("`") or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the body is not valid JSON: {error}") from None
