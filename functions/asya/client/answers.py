"""The answers of the gateway that no module of the gateway has a type for, and its errors."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from asya.client.errors import MeshError

T = TypeVar("T")


class Started(msgspec.Struct):
    """The answer to a call of a tool."""

    id: str


class Problem(msgspec.Struct):
    """An error: what a person reads, and its code."""

    message: str = ""
    code: str = ""


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
        MeshError: It has another form.
    """
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.MsgspecError as error:
        raise MeshError(f"the gateway sent an unexpected answer: {error}") from error


def error_of(answer: bytes) -> Problem:
    """Return the error of an answer; an empty one if the gateway's functions did not write it."""
    try:
        return msgspec.json.decode(answer, type=_Answer).error
    except msgspec.MsgspecError:
        return Problem()
