"""The options of actors about legacy forms (`protocol §14`)."""

from typing import Literal

from asya.option import Option
from asya.protocol.mesh_table import Actor

Responses = Literal["plain", "errors", "wrapped"]
"""Which responses of legacy runtimes a handler may give, beside payloads."""

CHILD_IDS: Option[Literal["uuid", "suffix"]] = Option(
    key="child_ids",
    type=Literal["uuid", "suffix"],
    default="uuid",
    text="`suffix`: children get the ids `{id}-{index}`, see [legacy forms](legacy-forms.md#child_ids-suffix).",
)
FAILED_PAYLOAD: Option[Literal["plain", "wrapped"]] = Option(
    key="failed_payload",
    type=Literal["plain", "wrapped"],
    default="plain",
    text="`wrapped`: a failure carries the payload beside its error, see "
    "[legacy forms](legacy-forms.md#failed_payload-wrapped).",
)
RESPONSES: Option[Responses] = Option(
    key="responses",
    type=Responses,
    default="plain",
    text="`errors`: a returned `{error, message}` is a failure; `wrapped`: `{status: ok, result}` is unwrapped, too. See "
    "[legacy forms](legacy-forms.md#handlers).",
    handler_modes=("payload",),
)


def numbers_children(actor: Actor) -> bool:
    """Return whether the children of an actor may get numbered ids."""
    return CHILD_IDS.of(actor) == "suffix"
