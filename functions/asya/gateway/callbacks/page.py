"""The page of a callback: the question of a pause as a form, and the answers in it (`protocol §11`).

The page shows the prompt, what the pause shows of the payload, and the fields. It has no script, and loads nothing.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from urllib.parse import parse_qs

import msgspec
from msgspec import UNSET, Raw

from asya.capabilities.pauses.resume_input import Answers
from asya.capabilities.pauses.shown import is_web_address, linked_parts
from asya.protocol.api_errors import ApiError
from asya.protocol.exact_json import encode_json
from asya.protocol.pause import PauseField, ShownValue, TaskPause
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
        return Raw(b"[" + b",".join(bytes(_json_value(text)) for text in texts) + b"]")
    is_plain = field.type == "string" and field.options is None
    return _text(texts[-1]) if is_plain else _json_value(texts[-1])


def _json_value(text: str) -> Raw:
    """A text as JSON; one that is no JSON as a JSON text."""
    try:
        return encode_exact(decode_exact(text.encode("utf-8", "surrogatepass")))
    except ValueError:
        return _text(text)


def _text(text: str) -> Raw:
    return Raw(msgspec.json.encode(text))


_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.25rem; white-space: pre-line; }
fieldset, .field { border: 0; margin: 0 0 1rem; padding: 0; }
label, legend { display: block; font-weight: 600; }
.choice { font-weight: 400; }
input[type=text], select, textarea { box-sizing: border-box; font: inherit; padding: .4rem; width: 100%; }
button { font: inherit; padding: .5rem 1.5rem; }
dl { margin: 0 0 1.5rem; }
dt { font-weight: 600; overflow-wrap: anywhere; }
dd { margin: 0 0 .75rem; }
pre { font: .875rem/1.4 ui-monospace, monospace; margin: 0; max-height: 24rem; overflow: auto; }
pre { overflow-wrap: anywhere; white-space: pre-wrap; }
.quiet { color: #666; }
.problem { color: #b00020; margin: .2rem 0 0; }
@media (prefers-color-scheme: dark) { .problem { color: #ff8a80; } .quiet { color: #aaa; } }
"""
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex",
}
"""The headers of every answer of the route: no store, no frame, no referrer with the token."""

_JSON_HINTS = {"number": "a number", "array": "a JSON list", "object": "a JSON object"}


def form_page(
    pause: TaskPause, problems: Mapping[str, str] | None = None, values: Mapping[str, Sequence[str]] | None = None
) -> str:
    """The page with the form of a pause.

    Args:
        pause: the question and its fields.
        problems: the problems of the answers given before, by field.
        values: the texts of the answers given before, by field.
    """
    given, wrong = values or {}, problems or {}
    known = {field.name for field in pause.fields}
    others = [f"{name}: {problem}" for name, problem in wrong.items() if name not in known]
    parts = [
        f"<h1>{escape(pause.prompt)}</h1>",
        *(_shown_list(pause.shown) if pause.shown is not UNSET else ()),
        *(f'<p class="problem" role="alert">{escape(problem)}</p>' for problem in others),
        # Without an action the form is sent to the address of the page, with its token.
        '<form method="post">',
        *(_field(field, given.get(field.name), wrong.get(field.name)) for field in pause.fields),
        f"<button>{'Send' if pause.fields else 'Go on'}</button>",
        "</form>",
    ]
    return _page(pause.prompt, "\n".join(parts))


def _shown_list(shown: Sequence[ShownValue]) -> Iterator[str]:
    """What the pause shows of the payload: strangers may have written it, so it is text, and links to data at most."""
    yield "<dl>"
    for value in shown:
        yield f"<dt>{escape(value.name)}</dt>"
        yield f"<dd>{_value(value)}</dd>"
    yield "</dl>"


def _value(value: ShownValue) -> str:
    if value.text is None:
        return '<span class="quiet">missing</span>'
    text = "".join(_link(part) if is_link else escape(part) for part, is_link in linked_parts(value))
    # A newline right after the tag would be dropped.
    cut = '<p class="quiet">shortened: the payload has more</p>' if value.cut else ""
    return f'<pre tabindex="0">\n{text}</pre>{cut}'


def _link(address: str) -> str:
    """A link to data on the web; the holder of a link to this page may have no rights in AWS, so others stay text."""
    if not is_web_address(address):
        return escape(address)
    rel = "noopener noreferrer nofollow"
    return f'<a href="{escape(address, quote=True)}" target="_blank" rel="{rel}">{escape(address)}</a>'


def message_page(title: str, text: str) -> str:
    """A page with a message."""
    return _page(title, f"<h1>{escape(title)}</h1>\n<p>{escape(text)}</p>")


def _page(title: str, content: str) -> str:
    first_line = title.partition("\n")[0]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(first_line)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{content}\n</main>\n"
        f"</body>\n</html>\n"
    )


def _field(field: PauseField, given: Sequence[str] | None, problem: str | None) -> str:
    text = field.prompt or field.name
    note = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    if field.type == "array" and field.options is not None:
        chosen = given if given is not None else _texts(field.default)
        boxes = "\n".join(_box(field.name, option, chosen) for option in map(_json, field.options))
        if has_ticks_to_remove(field):
            # A browser sends nothing for boxes without a tick.
            boxes = f'<input type="hidden" name="{escape(field.name, quote=True)}">\n{boxes}'
        return f"<fieldset><legend>{escape(text)}</legend>\n{boxes}\n{note}</fieldset>"
    name = escape(field.name, quote=True)
    return f'<div class="field"><label for="{name}">{escape(text)}</label>\n{_input(field, name, given)}\n{note}</div>'


def _input(field: PauseField, name: str, given: Sequence[str] | None) -> str:
    value = given[-1] if given else _shown(field)
    is_needed = " required" if field.required and field.default is None else ""
    choices = _choices(field)
    if choices is not None:
        options = [("", "–"), *choices]
        lines = "".join(
            f'<option value="{escape(option, quote=True)}"{" selected" if option == value else ""}>{escape(shown)}</option>'
            for option, shown in options
        )
        return f'<select id="{name}" name="{name}"{is_needed}>{lines}</select>'
    if field.type in ("array", "object"):
        hint = _JSON_HINTS[field.type]
        return (
            f'<textarea id="{name}" name="{name}" rows="5" placeholder="{hint}"{is_needed}>{escape(value)}</textarea>'
        )
    mode = f' inputmode="decimal" placeholder="{_JSON_HINTS["number"]}"' if field.type == "number" else ""
    return f'<input id="{name}" name="{name}" type="text" value="{escape(value, quote=True)}"{mode}{is_needed}>'


def _choices(field: PauseField) -> list[tuple[str, str]] | None:
    """The values and texts of a choice; None for a free answer. The values are JSON."""
    if field.options is not None:
        return [(_json(option), option if isinstance(option, str) else _json(option)) for option in field.options]
    return [("true", "Yes"), ("false", "No")] if field.type == "boolean" else None


def _box(name: str, option: str, chosen: Sequence[str]) -> str:
    checked = " checked" if option in chosen else ""
    shown = msgspec.json.decode(option)
    text = shown if isinstance(shown, str) else option
    return (
        f'<label class="choice"><input type="checkbox" name="{escape(name, quote=True)}" '
        f'value="{escape(option, quote=True)}"{checked}> {escape(text)}</label>'
    )


def _shown(field: PauseField) -> str:
    """The default of a field as its input shows it."""
    if field.default is None:
        return ""
    is_plain = isinstance(field.default, str) and field.type == "string" and field.options is None
    return field.default if is_plain and isinstance(field.default, str) else _json(field.default)


def _texts(default: object) -> list[str]:
    return [_json(value) for value in default] if isinstance(default, list | tuple) else []


def _json(value: object) -> str:
    return encode_json(value).decode()
