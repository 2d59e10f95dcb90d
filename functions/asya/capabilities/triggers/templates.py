"""Fills in the payload of a trigger: `{date}` in a text becomes the value of the occurrence (`protocol §16.payload`)."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ALONE = re.compile(r"\{([^{}]*)\}")


def fill_in(template: object, values: Mapping[str, object]) -> object:
    """Return the template with its placeholders replaced, in texts at any depth; keys stay.

    A text that is one placeholder becomes the value itself, which need not be text.

    Raises:
        ValueError: a placeholder has no value, or a brace stands alone.
    """
    match template:
        case str() if alone := _ALONE.fullmatch(template):
            return _named(alone[1], values)
        case str():
            return _PLACEHOLDER.sub(lambda match: _value(match, values), template)
        case dict():
            return {key: fill_in(value, values) for key, value in template.items()}
        case list() | tuple():
            return [fill_in(value, values) for value in template]
        case _:
            return template


def _value(match: re.Match[str], values: Mapping[str, object]) -> str:
    text = match[0]
    if text in ("{{", "}}"):
        return text[0]
    name = match[1]
    if name is None:
        raise ValueError(f"{text!r} stands alone; write {text * 2!r} for the character")
    value = _named(name, values)
    if not isinstance(value, str):
        raise ValueError(f"{{{name}}} stands for a value that is no text, so it cannot be a part of one")
    return value


def _named(name: str, values: Mapping[str, object]) -> object:
    if name not in values:
        known = ", ".join(f"{{{each}}}" for each in sorted(values))
        raise ValueError(f"there is no value {{{name}}}; the values are {known}")
    return values[name]
