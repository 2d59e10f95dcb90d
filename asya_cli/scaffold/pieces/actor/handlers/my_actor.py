"""The actor my-actor."""

from typing import TypedDict


class MyActor(TypedDict, total=False):
    """The payload. Keys that are not named here stay as they are."""

    text: str
    length: int


def my_actor(payload: MyActor) -> MyActor:
    """Measure the text. Write here what the actor does."""
    return {**payload, "length": len(payload.get("text", ""))}
