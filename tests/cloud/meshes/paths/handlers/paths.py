"""Handlers that do what their payload asks for: go on, go around, fail, hang, die.

Each call that matters leaves a note in the mesh's data, `notes/{envelope}/{what}-{nanoseconds}`: how often it was made, and when.
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


class Overloaded(Exception):  # noqa: N818 - the name of an exception of a user's own
    """Known by its qualified name."""


def note(envelope_id: str, what: str) -> None:
    """Leave a note that can be read when everything is over."""
    data.write(f"notes/{envelope_id}/{what}-{time.time_ns()}", b"here")


def step(payload: Payload) -> Payload:
    """One step more; with `swell`, so many characters more."""
    text = {"text": "x" * payload["swell"]} if "swell" in payload else {}
    return {**payload, **text, "steps": payload.get("steps", 0) + 1}


def helper(payload: Payload) -> Iterator[Any]:
    """Sees what went wrong before, if anything did, and measures a text that is there."""
    error = (yield ("GET", ".status")).get("error")
    measured = dict(payload)
    text = measured.pop("text", None)
    if text is not None:
        measured["measured"] = {"length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    if error is not None:
        measured["helped"] = {"type": error["type"], "message": error["message"]}
    yield {**measured, "steps": payload.get("steps", 0) + 1}


def planner(payload: Payload) -> Iterator[Any]:
    """Says itself where it goes on."""
    yield ("SET", ".route.next", payload["plan"])
    yield ("SET", ".headers.planned", len(payload["plan"]))
    yield {"planned": True}


def loop(payload: Payload) -> Iterator[Any]:
    """Goes around until nothing is left."""
    left = payload["left"] - 1
    if left:
        yield ("SET", ".route.next[:0]", ["loop"])
    yield {"left": left}


def spread(payload: Payload) -> Iterator[Payload]:
    """Three for one."""
    for number in range(3):
        yield {"path": [*payload["path"], number]}


ERRORS: dict[str, type[Exception]] = {
    "constant": ValueError,
    "linear": KeyError,
    "exponential": Overloaded,
    "lasting": ZeroDivisionError,
    "rescued": ConnectionResetError,  # a ConnectionError by descent
    "patient": TypeError,
    "unforeseen": RuntimeError,
}


def stubborn(payload: Payload) -> Iterator[Any]:
    """Fails in the way it is told to, until the attempt it is told to succeed at."""
    attempt = yield ("GET", ".status.attempt")
    note((yield ("GET", ".id")), f"attempt-{attempt:03}")
    if attempt < payload.get("until", 1_000_000):
        raise ERRORS[payload["fails"]](f"attempt {attempt}")
    yield {"attempt": attempt}


hung = 0


def slow(payload: Payload) -> Any:
    """Hangs, in whichever kind of handler it is told to; else says which process it is and how often that one has hung."""
    global hung  # noqa: PLW0603 - it is the process that this is about
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
    time.sleep(600)  # the mistake that people make


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
    """Takes its process along, or cannot be interrupted, the first time; does its work the second time."""
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
    """Whether somebody was here."""
    try:
        return data.size(reference) > 0
    except FileNotFoundError:
        return False


def once(payload: Payload) -> Iterator[Any]:
    """Counts its calls by its notes, and takes as long as it is told to."""
    note((yield ("GET", ".id")), "call")
    time.sleep(payload.get("seconds", 0))
    yield payload


def halves(payload: Payload) -> Iterator[Any]:
    """Fails half way the first time; what it gives is never the same twice."""
    token = secrets.token_hex(8)
    attempt = yield ("GET", ".status.attempt")
    for number in range(3):
        if number == 2 and attempt == 1:
            raise RuntimeError("half way")
        yield {"number": number, "token": token}


def witness(payload: Any) -> Iterator[Any]:
    """Notes what it was asked to see: how an envelope ended."""
    if isinstance(payload, dict) and payload.get("witness"):
        error = (yield ("GET", ".status")).get("error")
        note((yield ("GET", ".id")), error["type"] if error else "success")
    yield payload


def whole(envelope: Payload) -> Payload:
    """Gets the envelope as a whole and moves it on by itself."""
    route = envelope["route"]
    done, ahead = [*route["prev"], route["curr"]], route["next"]
    envelope["route"] = {"prev": done, "curr": ahead[0] if ahead else "", "next": ahead[1:]}
    envelope["headers"] = {**envelope.get("headers", {}), "seen-by": "whole"}
    envelope["payload"] = {"was": envelope["payload"]}
    return envelope
