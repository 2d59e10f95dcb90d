"""What the body of a webhook tells: JSON, a form, or text (`protocol §16.webhooks.payload`)."""

from urllib.parse import parse_qsl

from asya.protocol.strict_json import decode_exact

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1000
_JSON_FIELD = "payload"


class UnreadableBodyError(ValueError):
    """The body has another form than its content type says."""


def read_body(text: str, content_type: str) -> object:
    """The value of a body.

    Args:
        text: the body.
        content_type: the header of the request; empty counts as JSON.

    Raises:
        UnreadableBodyError: the body is not of its type.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if not media_type or media_type == "application/json" or media_type.endswith("+json"):
        return _json(text)
    return _form(text) if media_type == _FORM else {"body": text}


def type_of(body: object) -> str:
    """The type that a body names in its field `type`, as Stripe, Slack and Standard Webhooks have it; empty without one."""
    found = body.get("type") if isinstance(body, dict) else None
    return found if isinstance(found, str) else ""


def _json(text: str) -> object:
    try:
        return decode_exact(text.encode())
    except ValueError as error:
        raise UnreadableBodyError(f"the body is not valid JSON: {error}") from None


def _form(text: str) -> object:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise UnreadableBodyError(f"the body is no form with up to {_MOST_FIELDS} fields: {error}") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    if list(fields) == [_JSON_FIELD] and len(fields[_JSON_FIELD]) == 1:
        # GitHub and Slack send JSON in a form with this field alone.
        try:
            return decode_exact(fields[_JSON_FIELD][0].encode())
        except ValueError:
            pass
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
