"""Checks the answer with which a record was resumed: a caller has sent it, and it fits its pause (`protocol §11`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Field = Mapping[str, Any]

_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "number": (int, float), "boolean": bool}


def answer_problems(fields: Sequence[Field], answer: Any, sent: Iterable[Any]) -> Iterator[str]:
    """Yield the problems of an accepted answer.

    Args:
        fields: the fields of the pause that the answer ended, not those that its caller was notified of: a task may
            have paused again meanwhile.
        answer: the answer in the record.
        sent: all answers that callers have sent to the task.
    """
    if not isinstance(answer, dict):
        yield "it is not an object"
        return
    defaults = {each["name"]: each["default"] for each in fields if "default" in each}
    if not any(isinstance(each, dict) and defaults | each == answer for each in sent):
        yield "no caller has sent it"
    if not fields:
        return  # any object fits
    by_name = {each["name"]: each for each in fields}
    yield from (f"{name} is not asked for" for name in answer if name not in by_name)
    for name, each in by_name.items():
        if name not in answer:
            if each.get("required", True):
                yield f"{name} is missing"
        elif not _has_type(answer[name], each["type"]):
            yield f"{name} is not a {each['type']}"


def _has_type(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
