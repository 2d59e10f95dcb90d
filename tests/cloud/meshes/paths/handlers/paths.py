"""Handlers that do what their payload says: continue, loop, fail, hang or crash.

Some calls write a note to the data of the mesh, `notes/{envelope}/{name}-{nanoseconds}`, so that tests can count them.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asya import data

Payload = dict[str, Any]


class Overloaded(Exception):  # noqa: N818 - stands for a user's exception
    """An exception that a rule names by its qualified name."""


def note(envelope_id: str, name: str) -> None:
    """Writes a note for the tests."""
    data.write(f"notes/{envelope_id}/{name}-{time.time_ns()}", b"here")


def step(payload: Payload) -> Payload:
    """Counts a step; `swell` adds that many characters."""
    text = {"text": "x" * payload["swell"]} if "swell" in payload else {}
    return {**payload, **text, "steps": payload.get("steps", 0) + 1}


def helper(payload: Payload) -> Iterator[Any]:
    """Counts a step, copies the error from the status, and replaces the text by its measures."""
    error = (yield ("GET", ".status")).get("error")
    result = dict(payload)
    text = result.pop("text", None)
    if text is not None:
        result["measured"] = {"length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    if error is not None:
        result["helped"] = {"type": error["type"], "message": error["message"]}
    yield {**result, "steps": payload.get("steps", 0) + 1}


def planner(payload: Payload) -> Iterator[Any]:
    """Sets the rest of the route to the plan of the payload."""
    yield ("SET", ".route.next", payload["plan"])
    yield ("SET", ".headers.planned", len(payload["plan"]))
    yield {"planned": True}


def loop(payload: Payload) -> Iterator[Any]:
    """Repeats itself until `left` is 0."""
    left = payload["left"] - 1
    if left:
        yield ("SET", ".route.next[:0]", ["loop"])
    yield {"left": left}


def spread(payload: Payload) -> Iterator[Payload]:
    """Yields three frames."""
    for number in range(3):
        yield {"path": [*payload["path"], number]}


ERRORS: dict[str, type[Exception]] = {
    "constant": ValueError,
    "linear": KeyError,
    "exponential": Overloaded,
    "lasting": ZeroDivisionError,
    "rescued": ConnectionResetError,  # a subclass of ConnectionError
    "patient": TypeError,
    "unforeseen": RuntimeError,
}


def stubborn(payload: Payload) -> Iterator[Any]:
    """Raises the error `fails` until the attempt `until`."""
    attempt = yield ("GET", ".status.attempt")
    note((yield ("GET", ".id")), f"attempt-{attempt:03}")
    if attempt < payload.get("until", 1_000_000):
        raise ERRORS[payload["fails"]](f"attempt {attempt}")
    yield {"attempt": attempt}


hung = 0


def slow(payload: Payload) -> Any:
    """Hangs in the kind of handler `how`; `fine` returns the process id and the number of its hangs."""
    global hung  # noqa: PLW0603 - counts the hangs of the process
    how = payload["how"]
    if how == "fine":
        return {"process": os.getpid(), "hung": hung}
    if how == "leave":
        sys.exit("I am done")
    hung += 1
    return HANGS[how]()


def hang() -> None:
    time.sleep(600)


async def hang_async() -> None:
    await asyncio.sleep(600)


async def hang_and_block() -> None:
    time.sleep(600)  # a common mistake


def hang_generating() -> Iterator[Any]:
    yield ("GET", ".id")
    time.sleep(600)


async def hang_generating_async() -> AsyncIterator[Any]:
    yield ("GET", ".id")
    await asyncio.sleep(600)


HANGS = {
    "function": hang,
    "coroutine": hang_async,
    "blocked loop": hang_and_block,
    "generator": hang_generating,
    "asynchronous generator": hang_generating_async,
}


def deaf(payload: Payload) -> Iterator[Any]:
    """The first call ends its process or ignores interrupts; the second call succeeds."""
    envelope_id = yield ("GET", ".id")
    note(envelope_id, "call")
    if not is_noted(f"notes/{envelope_id}/seen"):
        data.write(f"notes/{envelope_id}/seen", b"once")
        if payload["how"] == "exit":
            os._exit(1)
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(600)
    yield {"how": payload["how"]}


def is_noted(reference: str) -> bool:
    """Returns whether a note exists."""
    try:
        return data.size(reference) > 0
    except FileNotFoundError:
        return False


def once(payload: Payload) -> Iterator[Any]:
    """Writes a note for each call, and sleeps for `seconds`."""
    note((yield ("GET", ".id")), "call")
    time.sleep(payload.get("seconds", 0))
    yield payload


def files(payload: Payload) -> Payload:
    """The references of each prefix, or the error; the rows of a file, and those after its first row."""
    if "prefixes" in payload:
        return {prefix: _listed(prefix) for prefix in payload["prefixes"]}
    rows = [*data.rows(payload["file"])]
    after = data.rows(payload["file"], after=rows[0].cursor)
    return {"rows": [row.value for row in rows], "after": [row.value for row in after]}


def _listed(prefix: str) -> list[str] | str:
    try:
        return [file.reference for file in data.list(prefix)]
    except PermissionError as error:
        return str(error)


def halves(payload: Payload) -> Iterator[Any]:
    """Fails after two frames in the first attempt; its token differs in each call."""
    token = secrets.token_hex(8)
    attempt = yield ("GET", ".status.attempt")
    for number in range(3):
        if number == 2 and attempt == 1:
            raise RuntimeError("half way")
        yield {"number": number, "token": token}


def witness(payload: Any) -> Iterator[Any]:
    """Notes how an envelope ended, if the payload asks for it."""
    if isinstance(payload, dict) and payload.get("witness"):
        error = (yield ("GET", ".status")).get("error")
        note((yield ("GET", ".id")), error["type"] if error else "success")
    yield payload


def whole(envelope: Payload) -> Payload:
    """Receives the whole envelope and advances its route."""
    route = envelope["route"]
    prev, ahead = [*route["prev"], route["curr"]], route["next"]
    envelope["route"] = {"prev": prev, "curr": ahead[0] if ahead else "", "next": ahead[1:]}
    envelope["headers"] = {**envelope.get("headers", {}), "seen-by": "whole"}
    envelope["payload"] = {"was": envelope["payload"]}
    return envelope
