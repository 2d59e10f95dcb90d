"""The error of a payload that does not fit."""


class ContractError(ValueError):
    """A payload does not fit the types of a handler; the message names the field (`protocol §6.contract`)."""


NAME = "ContractError"
"""The type of this error in envelopes. Only a retry rule with exactly this name applies to it."""

MRO = ("ValueError", "Exception")
"""The ancestors of this error in envelopes."""

_SHOWN = 80


def mismatch(path: str, expected: str, value: object) -> ContractError:
    """The error of a value of another type."""
    return ContractError(f"{path}: should be {expected}; got {shown(value)}")


def shown(value: object) -> str:
    """A value as errors show it: scalars themselves, and of collections only the type."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "an object"
        case list() | tuple():
            return "an array"
        case _:
            text = repr(value)
            return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
