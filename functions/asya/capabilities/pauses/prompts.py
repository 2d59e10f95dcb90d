"""Fills in the prompt of a pause: `{/total}` becomes the value of the payload (`protocol §11.pause.prompt`)."""

import re
from collections.abc import Iterator

from msgspec import Raw

from asya.capabilities.pauses.shown import one_line
from asya.protocol.json_pointer import check_pointer
from asya.protocol.raw_values import value_at

VALUE_CHARACTERS = 200
"""Characters of one value."""
MOST_PLACEHOLDERS = 20
MISSING = "(missing)"

# The grammar of the templates of triggers (`protocol §16.payload`), with pointers for names.
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def fill_in(prompt: str, payload: Raw) -> str:
    """The prompt with the values of a payload. It never fails: a missing value is `(missing)`, a lone brace stays."""

    def value_of(match: re.Match[str]) -> str:
        pointer = match[1]
        if pointer is None:
            return match[0][0]
        if not pointer:
            return match[0]
        try:
            value = value_at(payload, pointer)
        except ValueError:
            return match[0]
        return MISSING if value is None else one_line(value, VALUE_CHARACTERS)

    return _PLACEHOLDER.sub(value_of, prompt)


def prompt_problems(prompt: str) -> Iterator[str]:
    """What is wrong with the template of a prompt."""
    count = 0
    for match in _PLACEHOLDER.finditer(prompt):
        text, pointer = match[0], match[1]
        if text in ("{{", "}}"):
            continue
        if pointer is None:
            yield f"{text!r} stands alone; write {text * 2!r} for the character"
            continue
        count += 1
        problem = "a JSON pointer stands in it, such as {/total}" if not pointer else None
        try:
            check_pointer(pointer)
        except ValueError as error:
            problem = str(error)
        if problem is not None:
            yield f"{text!r} names no value of the payload: {problem}; write '{{{{' and '}}}}' for the characters"
    if count > MOST_PLACEHOLDERS:
        yield f"has {count} values of the payload; {MOST_PLACEHOLDERS} at most"
