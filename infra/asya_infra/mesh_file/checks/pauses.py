"""Checks the fields of pauses and the addresses of their notifications (`protocol §11`)."""

import re
from collections.abc import Iterator

from asya.capabilities.pauses.prompts import prompt_problems
from asya.capabilities.pauses.resume_input import problem_of
from asya.capabilities.pauses.shown import MOST_SHOWN, POINTER_CHARACTERS
from asya.protocol.exact_json import encode_json
from asya.protocol.json_pointer import check_pointer
from asya.protocol.pause import PauseField
from asya_infra.mesh_file.actor_model import PauseSection
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.sections import plain
from asya_infra.mesh_file.source import Location

# Each report of a pause and the task's record contain the prompts and options.
_TEXT_LIMIT = 32 * 1024
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+|https://[^/\s]+\S*|arn:[^:\s]+:sqs:[^:\s]+:\d{12}:[^:\s]+")


def check_pauses(context: Context) -> Iterator[Finding]:
    """Check the fields and notification addresses of each pause actor."""
    for name, actor in context.mesh.actors.items():
        if actor.pause is not None:
            yield from _findings(actor.pause, ("actors", name, "pause"))


def _findings(pause: PauseSection, place: Location) -> Iterator[Finding]:
    yield from (((*place, "prompt"), problem) for problem in prompt_problems(pause.prompt))
    yield from _shown_findings(pause.show or (), (*place, "show"))
    field_names: set[str] = set()
    for index, field in enumerate(pause.fields):
        where = (*place, "fields", index)
        if field.name in field_names:
            yield (*where, "name"), f"a field {field.name!r} exists already; rename one of them"
        field_names.add(field.name)
        if field.payload_key is not None:
            try:
                check_pointer(field.payload_key)
            except ValueError as error:
                yield (*where, "payload_key"), str(error)
        asked = PauseField(name=field.name, type=field.type, options=field.options)
        if field.default is not None and (problem := problem_of(asked, field.default)):
            yield (*where, "default"), problem
    if pause.callback_key is not None:
        if not pause.callback:
            yield (*place, "callback_key"), "needs callback: true"
        try:
            check_pointer(pause.callback_key)
        except ValueError as error:
            yield (*place, "callback_key"), str(error)
    size = len(encode_json(plain(pause)))
    if size > _TEXT_LIMIT:
        yield place, f"has {size} bytes of prompts and options; {_TEXT_LIMIT} at most"
    for index, address in enumerate(pause.notify):
        if not _ADDRESS.fullmatch(address):
            expected = "an e-mail address, an https:// URL or the ARN of an SQS queue"
            yield (*place, "notify", index), f"should be {expected}; got {address!r}"


def _shown_findings(pointers: tuple[str, ...], place: Location) -> Iterator[Finding]:
    for index, pointer in enumerate(pointers):
        try:
            check_pointer(pointer)
        except ValueError as error:
            yield (*place, index), str(error)
        if pointer in pointers[:index]:
            yield (*place, index), f"{pointer!r} is there already; remove one of them"
        if len(pointer) > POINTER_CHARACTERS:
            yield (*place, index), f"has {len(pointer)} characters; {POINTER_CHARACTERS} at most"
    if len(pointers) > MOST_SHOWN:
        yield place, f"has {len(pointers)} values; {MOST_SHOWN} at most"
