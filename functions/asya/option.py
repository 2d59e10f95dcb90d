"""An option of actors that a capability declares, beside those of `asya.protocol.mesh_table`."""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

from asya.protocol.mesh_table import Actor

T = TypeVar("T")
HandlerMode = Literal["payload", "envelope", "envelope-v1"]


@dataclass(frozen=True, kw_only=True)
class Option(Generic[T]):
    """A key of actors in the mesh file. The functions of the capability read it with `of`.

    Attributes:
        key: The key.
        type: The type with its bounds (`msgspec.Meta`), or a section: a frozen `msgspec.Struct`.
        default: The value of an actor without the key.
        text: What it does, as the page of keys and the schema say it. Links are those of the page.
        kinds: The kinds of actors that may have it; empty for all.
        handler_modes: The modes of the handlers that may have it; empty for all, also for actors without a handler.
    """

    key: str
    type: Any
    default: T
    text: str
    kinds: tuple[str, ...] = ()
    handler_modes: tuple[HandlerMode, ...] = ()

    def of(self, actor: Actor) -> T:
        """Return the value of an actor."""
        if self.key not in actor.own_options:
            return self.default
        return cast("T", msgspec.convert(actor.own_options[self.key], self.type))

    def is_set(self, actor: Actor) -> bool:
        """Whether an actor has another value than the default."""
        return self.of(actor) != self.default
