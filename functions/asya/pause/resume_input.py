"""The answers of whoever resumes: read, checked against what was asked for, put into the payload (`protocol §11`)."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw

from asya.protocol.api_errors import ApiError
from asya.protocol.insertion import insert
from asya.protocol.pause import PauseField
from asya.protocol.strict_json import escape

Answers = dict[str, Raw]

_answers_decoder = msgspec.json.Decoder(dict[str, Raw])
_WORDS = {
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


class InvalidInputError(ApiError):
    """The input does not answer what was asked.

    Attributes:
        fields: what is wrong, by field.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        told = "; ".join(f"{name}: {problem}" for name, problem in fields.items())
        super().__init__(422, "invalid_input", f"the task stays paused: {told}", next(iter(fields), None))
        self.fields = dict(fields)


def read_request(body: bytes) -> Answers:
    """Read the body of `POST /api/v1/mesh/{id}/resume`: `{"input": {…}}`.

    Raises:
        ApiError: 400 if it is no such thing.
    """
    try:
        raw = msgspec.json.decode(body or b"{}", type=_Request).input
        msgspec.json.decode(raw)  # numbers out of range and the like show only when they are read
        return _answers_decoder.decode(raw)
    except msgspec.ValidationError as error:
        problem = f'the body should be {{"input": {{…}}}} with the answers by name: {error}'
        raise ApiError(400, "invalid_field", problem, "input") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the body is no JSON: {error}") from None


def checked(fields: Iterable[PauseField], answers: Answers) -> Answers:
    """The answers, completed by the defaults.

    Raises:
        InvalidInputError: naming every field that is missing, not asked for, or answered by what it cannot be.
    """
    asked = {field.name: field for field in fields}
    if not asked:
        return dict(answers)
    problems = {name: f"is not asked for; the fields are {', '.join(asked)}" for name in answers if name not in asked}
    complete: Answers = {}
    for name, field in asked.items():
        if name in answers:
            problem = problem_of(field, msgspec.json.decode(answers[name]))
            if problem:
                problems[name] = problem
            complete[name] = answers[name]
        elif field.default is not None:
            complete[name] = Raw(escape(msgspec.json.encode(field.default)))
        elif field.required:
            problems[name] = f"is missing: {field.prompt or _WORDS[field.type]}"
    if problems:
        raise InvalidInputError(problems)
    return complete


def merged(payload: Raw, fields: Iterable[PauseField], answers: Answers) -> Raw:
    """The payload with each answer at its field's place; without fields, with the answers at its root.

    Raises:
        InvalidInputError: if there is no room for an answer.
    """
    places = {field.name: field.pointer for field in fields}
    for name, value in answers.items():
        pointer = places.get(name, "/" + name.replace("~", "~0").replace("/", "~1"))
        try:
            payload = insert(payload, pointer, value)
        except ValueError as error:
            raise InvalidInputError({name: f"cannot be put into the payload: {error}"}) from None
    return payload


def problem_of(field: PauseField, value: object) -> str | None:
    """What is wrong with an answer; None if nothing is."""
    if not isinstance(value, _TYPES[field.type]) or (isinstance(value, bool) and field.type != "boolean"):
        return f"should be {_WORDS[field.type]}, not {msgspec.json.encode(value).decode()[:100]}"
    if field.options is None:
        return None
    chosen = value if isinstance(value, list) else [value]
    strange = next((each for each in chosen if not any(_same(each, option) for option in field.options)), None)
    if strange is None:
        return None
    options = ", ".join(msgspec.json.encode(option).decode() for option in field.options)
    return f"should be one of {options}; not {msgspec.json.encode(strange).decode()[:100]}"


def _same(one: object, other: object) -> bool:
    """Equal as JSON values: to Python `True` is 1 as well."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other
