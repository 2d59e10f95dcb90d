"""Fills in the payload of a trigger: `{date}` in a text becomes the value of the occurrence (`protocol §16.payload`)."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def fill_in(template: object, values: Mapping[str, str]) -> object:
    """Return the template with its placeholders replaced, in texts at any depth; keys stay.

    Raises:
        ValueError: a placeholder has no value, or a brace stands alone.
    """
    match template:
        case str():
            return _PLACEHOLDER.sub(lambda match: _value(match, values), template)
        case dict():
            return {key: fill_in(value, values) for key, value in template.items()}
        case list() | tuple():
            return [fill_in(value, values) for value in template]
        case _:
            return template


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    text = match[0]
    if text in ("{{", "}}"):
        return text[0]
    name = match[1]
    if name is None:
        raise ValueError(f"{text!r} stands alone; write {text * 2!r} for the character")
    if name not in values:
        known = ", ".join(f"{{{each}}}" for each in sorted(values))
        raise ValueError(f"there is no value {{{name}}}; the values are {known}")
    return values[name]
