"""The options of stamps, for the mesh file and for the functions."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from asya.option import Option


class Stamp(Struct, frozen=True, kw_only=True):
    """How an actor stamps."""

    ink: Literal["blue", "red"] = "blue"
    """The color."""
    copies: Annotated[int, Meta(ge=1, le=9)] = 1
    """The stamps of each envelope."""


STAMP = Option[Stamp](key="stamp", type=Stamp, default=Stamp(), text="How the actor stamps.", kinds=("stamp",))
