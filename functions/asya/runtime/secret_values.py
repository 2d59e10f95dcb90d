"""The values of an actor's secrets in texts (`protocol §6`)."""

import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

# The prefix of a reference to a parameter of Systems Manager; without it a reference is the name of a secret.
PARAMETER_PREFIX = "ssm:"
# Shorter texts occur in messages by chance.
_SHORTEST = 6


def redact(text: str, values: Mapping[str, AbstractSet[str]]) -> str:
    """Return a text with `[secret NAME]` for each value, and for each text in a value that is JSON.

    Args:
        text: the text.
        values: the values of each variable, also earlier ones.
    """
    parts = {part: variable for variable in values for value in values[variable] for part in _parts(value)}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, f"[secret {parts[part]}]")
    return text


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
