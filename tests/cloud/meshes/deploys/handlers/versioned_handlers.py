"""The light actors; each puts its version into the payload. The test deploys this file with another version."""

import time

VERSION = 1


class BusyError(Exception):
    """The first attempt of every tenth envelope."""


def enter(payload):
    time.sleep(payload.get("seconds", 0))
    return {"n": payload["n"], "entered": VERSION}


def leave(payload):
    status = yield ("GET", ".status")
    if payload["n"] % 10 == 0 and status["attempt"] == 1:
        raise BusyError("the first attempt")
    if VERSION > 1:
        yield ("SET", ".route.next", ["extra"])
    yield {**payload, "left": VERSION}


def extra(payload):
    return {**payload, "extra": VERSION}
