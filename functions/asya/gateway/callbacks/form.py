"""Reads the answers of a callback from a form (`protocol §11`)."""

from collections.abc import Iterable
from urllib.parse import parse_qs

import msgspec
from msgspec import Raw

from asya.capabilities.pauses.resume_input import Answers
from asya.protocol.api_errors import ApiError
from asya.protocol.pause import PauseField
from asya.protocol.strict_json import decode_exact, encode_exact

MEDIA_TYPE = "application/x-www-form-urlencoded"
_MOST_VALUES = 1_000


def read_form(body: bytes, fields: Iterable[PauseField]) -> Answers:
    """Read the answers of a submitted form.

    An empty value is no answer. Boxes that are ticked by default are the exception: their empty value is the empty list.

    A text that is not of the type of its field stays a text, so that the check of the answers names it.

    Raises:
        ApiError: 400 if the body is no form.
    """
    try:
        values = parse_qs(
            body.decode("utf-8"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=_MOST_VALUES
        )
    except ValueError as error:
        raise ApiError(400, "invalid_body", f"the body is no form: {error}") from None
    by_name = {field.name: field for field in fields}
    answers: Answers = {}
    for name, texts in values.items():
        field, given = by_name.get(name), [text for text in texts if text]
        if given or (field is not None and has_ticks_to_remove(field)):
            answers[name] = _answer(field, given) if field is not None else _text(given[-1])
    return answers


def has_ticks_to_remove(field: PauseField) -> bool:
    """Whether the boxes of a field are ticked by default, so that a form without a tick is the empty list."""
    return field.type == "array" and field.options is not None and field.default is not None


def values_of(body: bytes) -> dict[str, list[str]]:
    """The texts of a form by field, to show them again; none of a body that is no form."""
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_VALUES)
    except ValueError:
        return {}


def _answer(field: PauseField, texts: list[str]) -> Raw:
    if field.type == "array" and field.options is not None:
        return Raw(b"[" + b",".join(bytes(_json(text)) for text in texts) + b"]")
    is_plain = field.type == "string" and field.options is None
    return _text(texts[-1]) if is_plain else _json(texts[-1])


def _json(text: str) -> Raw:
    """A text as JSON; one that is no JSON as a JSON text."""
    try:
        return encode_exact(decode_exact(text.encode("utf-8", "surrogatepass")))
    except ValueError:
        return _text(text)


def _text(text: str) -> Raw:
    return Raw(msgspec.json.encode(text))
