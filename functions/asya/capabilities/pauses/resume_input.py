"""Reads the answers of a resume, checks them against the pause's fields and inserts them into the payload (`protocol §11`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Raw

from asya.protocol.api_errors import ApiError
from asya.protocol.exact_json import encode_json
from asya.protocol.numbers import is_same
from asya.protocol.pause import PauseField
from asya.protocol.raw_values import insert
from asya.protocol.strict_json import decode_exact, encode_exact

Answers = dict[str, Raw]

_answers_decoder = msgspec.json.Decoder(dict[str, Raw])
R = TypeVar("R", bound="_Request")
_TYPE_NAMES = {
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    input: Raw = Raw(b"{}")


class _ResumeRequest(_Request, forbid_unknown_fields=True):
    since: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeInput:
    """The answers of a resume.

    Attributes:
        answers: by name.
        since: the start of the pause that they are for; None for the present one.
    """

    answers: Answers
    since: str | None = None


class InvalidInputError(ApiError):
    """The answers do not fit the fields of the pause.

    Attributes:
        fields: the problem of each wrong field, by name.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        problems = "; ".join(f"{name}: {problem}" for name, problem in fields.items())
        super().__init__(422, "invalid_input", f"the task stays paused: {problems}", next(iter(fields), None))
        self.fields = dict(fields)


def read_request(body: bytes) -> Answers:
    """Read the body of a callback: `{"input": {…}}`.

    Raises:
        ApiError: 400 if the body is malformed.
    """
    return _read(body, _Request)[1]


def read_resume(body: bytes) -> ResumeInput:
    """Read the body of `POST /api/v1/mesh/{id}/resume`: that of a callback, perhaps with the start of the pause (`since`).

    Raises:
        ApiError: 400 if the body is malformed.
    """
    request, answers = _read(body, _ResumeRequest)
    return ResumeInput(answers, request.since)


def _read(body: bytes, kind: type[R]) -> tuple[R, Answers]:
    try:
        request = msgspec.json.decode(body or b"{}", type=kind)
        msgspec.json.decode(request.input)  # a raw value may hold a number out of range
        return request, _answers_decoder.decode(request.input)
    except msgspec.ValidationError as error:
        problem = f'the body should be {{"input": {{…}}}} with the answers by name: {error}'
        raise ApiError(400, "invalid_field", problem, "since" if "`$.since`" in str(error) else "input") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the body is no JSON: {error}") from None


def complete_answers(fields: Iterable[PauseField], answers: Answers) -> Answers:
    """Check the answers and complete them with the defaults.

    Raises:
        InvalidInputError: a field is missing, unknown or has a wrong value; names every such field.
    """
    by_name = {field.name: field for field in fields}
    if not by_name:
        return dict(answers)
    problems = {
        name: f"is not asked for; the fields are {', '.join(by_name)}" for name in answers if name not in by_name
    }
    complete: Answers = {}
    for name, field in by_name.items():
        if name in answers:
            problem = problem_of(field, decode_exact(answers[name]))
            if problem:
                problems[name] = problem
            complete[name] = answers[name]
        elif field.default is not None:
            complete[name] = encode_exact(field.default)
        elif field.required:
            problems[name] = f"is missing: {field.prompt or _TYPE_NAMES[field.type]}"
    if problems:
        raise InvalidInputError(problems)
    return complete


def merge_answers(payload: Raw, fields: Iterable[PauseField], answers: Answers) -> Raw:
    """Insert each answer at its field's pointer; without fields, at the root of the payload.

    Raises:
        InvalidInputError: an answer cannot be inserted at its pointer.
    """
    pointers = {field.name: field.pointer for field in fields}
    for name, value in answers.items():
        pointer = pointers.get(name, "/" + name.replace("~", "~0").replace("/", "~1"))
        try:
            payload = insert(payload, pointer, value)
        except ValueError as error:
            raise InvalidInputError({name: f"cannot be put into the payload: {error}"}) from None
    return payload


def problem_of(field: PauseField, value: object) -> str | None:
    """The problem of an answer; None if it is valid."""
    if not isinstance(value, _TYPES[field.type]) or (isinstance(value, bool) and field.type != "boolean"):
        return f"should be {_TYPE_NAMES[field.type]}, not {_shown(value)}"
    if field.options is None:
        return None
    choices = value if isinstance(value, list) else [value]
    invalid = next((choice for choice in choices if not any(is_same(choice, option) for option in field.options)), None)
    if invalid is None:
        return None
    options = ", ".join(encode_json(option).decode() for option in field.options)
    return f"should be one of {options}; not {_shown(invalid)}"


def _shown(value: object) -> str:
    return encode_json(value).decode()[:100]
