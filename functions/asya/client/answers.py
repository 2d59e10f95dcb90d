"""The answers of the gateway that no module of the gateway has a type for, and its errors."""

from __future__ import annotations

import platform
from typing import TypeVar

import msgspec

from asya.client.errors import AccessDeniedError, ConflictError, MeshError, RefusedError, UnavailableError

T = TypeVar("T")


class Ended(msgspec.Struct, frozen=True):
    """The answer to the cancellation of a task that has ended, although its record does not show it yet."""

    status: str | None = None


class Started(msgspec.Struct):
    """The answer to a call of a tool."""

    id: str


class Problem(msgspec.Struct):
    """An error: what a person reads, its code, and the field at fault."""

    message: str = ""
    code: str = ""
    field: str | None = None


class _Answer(msgspec.Struct):
    error: Problem


class _FieldProblem(msgspec.Struct):
    name: str
    message: str


class FieldProblems(msgspec.Struct):
    """The problems of the answers to a pause."""

    fields: tuple[_FieldProblem, ...] = ()


class FieldsAnswer(msgspec.Struct):
    """The answer 422."""

    error: FieldProblems


class InvalidInputError(Exception):
    """The gateway answered 422 with the problems of fields."""

    def __init__(self, problems: FieldProblems) -> None:
        super().__init__()
        self.fields = {each.name: each.message for each in problems.fields}


def decode(answer: bytes, kind: type[T]) -> T:
    """Decode an answer.

    Raises:
        MeshError: It has another form, or its lists and objects are nested too deeply for this Python.
    """
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.MsgspecError as error:
        raise MeshError(f"the gateway sent an unexpected answer: {error}") from error
    except RecursionError:
        # What a task returns is its starter's choice, and functions have a newer Python with more room.
        raise MeshError(f"the answer is nested too deeply for Python {platform.python_version()}") from None


def error_of(answer: bytes) -> Problem:
    """Return the error of an answer; an empty one if the gateway's functions did not write it."""
    try:
        return msgspec.json.decode(answer, type=_Answer).error
    except msgspec.MsgspecError:
        return Problem()


def refusal(status: int, answer: bytes) -> RefusedError:
    """Return the error of an answer.

    Args:
        status: The HTTP status of the answer, from 300 on.
        answer: Its body, from the gateway's functions or from API Gateway itself.
    """
    error = error_of(answer)
    if status in (409, 413) and error.message:
        return ConflictError(error.message, error.code, status=status, field=error.field)
    message = f"the gateway answered {status}: {error.message or answer[:300].decode('utf-8', 'replace')}"
    if status == 403:
        # Without a code, API Gateway has refused the call itself.
        own = "Ask an operator of the mesh."
        advice = own if error.code else "Your credentials need execute-api:Invoke on the mesh's API."
        return AccessDeniedError(message, advice, status=status, code=error.code, field=error.field)
    kind = UnavailableError if status == 429 or status >= 500 else RefusedError
    return kind(message, status=status, code=error.code, field=error.field)
