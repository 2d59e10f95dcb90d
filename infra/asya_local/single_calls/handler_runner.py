"""Calls one handler as the sidecar does: `python handler_runner.py request.json report.json`.

It runs in the environment of functions, so it imports the library and the user's packages alone.
"""

import json
import sys
import time
from dataclasses import asdict, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from asya.capabilities.legacy.responses import read_response
from asya.protocol.envelope import Frame
from asya.protocol.errors import ErrorInfo
from asya.runtime import call
from asya.runtime.abi import EnvelopeView, execute
from asya.runtime.load import LoadError, load
from asya.runtime.signatures import typed


class Recorder:
    """Collects what a handler gives."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.commands: list[dict[str, Any]] = []
        self.partials: list[Any] = []

    def execute(self, view: EnvelopeView, command: tuple[Any, ...]) -> Any:
        """Execute a command, and note it with its answer."""
        try:
            answer = execute(view, command)
        except Exception as error:
            self.commands.append({"command": command, "error": f"{type(error).__name__}: {error}"})
            raise
        self.commands.append({"command": command, "answer": answer})
        return answer

    def add(self, frame: Frame) -> None:
        """Note a frame."""
        self.frames.append(
            {
                **({"payload": frame.payload} if frame.payload is not None else {}),
                "next": frame.next,
                "headers": frame.headers,
                "status": frame.status,
            }
        )


def main(request_file: str, report_file: str) -> None:
    """Call the handler, and write the report."""
    # The payload stays text, because the types of the handler decide how its numbers are read.
    members = msgspec.json.decode(Path(request_file).read_bytes(), type=dict[str, Raw])
    payload = members.pop("payload")
    request = {name: msgspec.json.decode(value) for name, value in members.items()}
    recorder = Recorder()
    call.execute = recorder.execute  # type: ignore[attr-defined]
    report: dict[str, Any] = {}
    began = time.monotonic()
    try:
        _call(request, payload, recorder)
    except LoadError as error:
        report["error"] = _described(ErrorInfo(type="LoadError", message=str(error)))
    except call.HandlerTimedOut:
        message = f"Runtime did not respond within {request['timeout']:g}s"
        report |= {"timed_out": True, "error": _described(ErrorInfo(type="Timeout", message=message))}
    except call.HandlerFailed as failure:
        report["error"] = _described(failure.error)
    # A command may hold any object. The report shows the object as text.
    told = json.dumps({"commands": recorder.commands, "partials": recorder.partials}, default=_plain).encode()
    report |= msgspec.json.decode(told, type=dict[str, Raw])
    report |= {"frames": recorder.frames, "milliseconds": (time.monotonic() - began) * 1000}
    Path(report_file).write_bytes(msgspec.json.encode(report))


def _call(request: dict[str, Any], payload: Raw, recorder: Recorder) -> None:
    handler = load(request["handler"])
    held = typed(request["handler"], handler, request["mode"], lists_fan_out=request["lists_fan_out"])
    responses = partial(read_response, request["responses"])
    invoker = call.HandlerInvoker(held.call, held.mode, request["lists_fan_out"], responses)

    def view() -> EnvelopeView:
        return EnvelopeView(
            id=request["id"],
            parent_id="",
            prev=(),
            curr=request["actor"],
            next=list(request["next"]),
            headers={},
            status={},
            publish_partial=recorder.partials.append,
        )

    received = invoker.read(payload)
    for frame in invoker.frames(received.value, view, request["timeout"], received.digits):
        recorder.add(frame)


def _described(error: ErrorInfo) -> dict[str, Any]:
    return {"type": error.type, "message": error.message, "mro": error.mro, "traceback": error.traceback}


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else repr(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
