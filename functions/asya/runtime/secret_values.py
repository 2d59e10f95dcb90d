"""The values of an actor's secrets in texts (`protocol §6`)."""

import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

# The prefix of a reference to a parameter of Systems Manager; without it a reference is the name of a secret.
PARAMETER_PREFIX = "ssm:"
# Shorter texts occur in messages by chance.
_SHORTEST = 6
# A long message or traceback is cut before this module sees it, perhaps within a value.
_CUT = "…"
_SHORTEST_REST = 4


def redact(text: str, values: Mapping[str, AbstractSet[str]]) -> str:
    """Return a text with `[secret NAME]` for each value, for each text in a value that is JSON, and for the rest of a cut one.

    Args:
        text: the text.
        values: the values of each variable, also earlier ones.
    """
    parts = {part: variable for variable in values for value in values[variable] for part in _parts(value)}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, f"[secret {parts[part]}]")
    if parts and text.startswith(_CUT):
        size, name = max((_rest_size(text[len(_CUT) :], part), name) for part, name in parts.items())
        if size:
            text = f"{_CUT}[secret {name}]{text[len(_CUT) + size :]}"
    if parts and text.endswith(_CUT):
        end = text[: -len(_CUT)][::-1]
        size, name = max((_rest_size(end, part[::-1]), name) for part, name in parts.items())
        if size:
            text = f"{text[: -len(_CUT) - size]}[secret {name}]{_CUT}"
    return text


def _rest_size(text: str, part: str) -> int:
    """Return how many characters of the end of a value a text begins with; 0 if they are few."""
    sizes = range(len(part) - 1, _SHORTEST_REST - 1, -1)
    return next((size for size in sizes if text.startswith(part[-size:])), 0)


def _parts(value: str) -> set[str]:
    """Return the forms of a value that may occur in a text."""
    try:
        texts = {value, value.strip(), *_texts(json.loads(value))}
    except (ValueError, RecursionError):
        texts = {value, value.strip()}
    forms = texts | {repr(text)[1:-1] for text in texts} | {json.dumps(text)[1:-1] for text in texts}
    return {form for form in forms if len(form) >= _SHORTEST}


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
