"""An option of actors that a capability declares, beside those of `asya.protocol.mesh_table`."""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from asya.protocol.mesh_table import Actor

T = TypeVar("T")
HandlerMode = Literal["payload", "envelope", "envelope-v1"]


@dataclass(frozen=True, kw_only=True)
class Option(Generic[T]):
    """A key of actors in the mesh file. The functions of the capability read it with `of`.

    Attributes:
        key: The key.
        type: The type with its bounds (`msgspec.Meta`), or a section: a frozen `msgspec.Struct`.
        default: The value of an actor without the key. Without a default, each actor of `kinds` must have the key.
        text: What it does, as the page of keys and the schema say it. Links are those of the page.
        kinds: The kinds of actors that may have it; empty for all.
        example: A value as the mesh file has it, such as `{ink: red}`, for the message about a missing key.
        handler_modes: The modes of the handlers that may have it; empty for all, also for actors without a handler.
    """

    key: str
    type: Any
    default: T | UnsetType = UNSET
    text: str
    kinds: tuple[str, ...] = ()
    example: str = ""
    handler_modes: tuple[HandlerMode, ...] = ()

    @property
    def is_required(self) -> bool:
        """Whether each actor of its kinds must have the key."""
        return self.default is UNSET

    def of(self, actor: Actor) -> T:
        """Return the value of an actor.

        Raises:
            LookupError: The actor lacks a required key. No mesh file without the key becomes a table.
        """
        if self.key not in actor.own_options:
            if isinstance(self.default, UnsetType):
                raise LookupError(f"an actor of kind {actor.kind!r} has no {self.key}, which its kind requires")
            return self.default
        return cast("T", msgspec.convert(actor.own_options[self.key], self.type))

    def is_set(self, actor: Actor) -> bool:
        """Whether an actor has another value than the default."""
        return self.key in actor.own_options and self.of(actor) != self.default
