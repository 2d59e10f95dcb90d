"""Fans items out as slices of a set, which a fan-in actor merges (`protocol §9`).

    from asya import fan_out

    def split(payload):
        yield from fan_out(payload["airports"], to=["statistics"], into="/by_airport")

Standard library only, because heavy jobs use this module too.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from asya.protocol import headers, ids, names
from asya.protocol.json_pointer import check_pointer
from asya.protocol.numbers import Digits
from asya.runtime.abi import EnvelopeView

DEFAULT_KEY = "/results"
# All slices but the origin's. More items need a fan-out in two steps, because sets nest.
MAX_ITEMS = headers.MAX_SLICES - 1


class FanOutError(ValueError):
    """A fan-out is not the only output of its hop."""


class Slice(NamedTuple):
    """One slice of a fan-out, before it becomes a frame.

    Attributes:
        number: 0 for the origin, which keeps the received payload and ignores `item`.
        next: the `route.next` of the slice.
        header: the value of the header `x-asya-fan-in`.
    """

    number: int
    item: Any
    next: tuple[str, ...]
    header: dict[str, Any]


class FanOut:
    """The result of `fan_out`: the only output of its hop. Iteration yields this object once."""

    def __init__(self, items: tuple[Any, ...], to: tuple[str, ...], into: str, at: str) -> None:
        self.items = items
        self.to = to
        self.into = into
        self.at = at

    def __iter__(self) -> Iterator["FanOut"]:
        """Yield this object, for `yield from`."""
        yield self

    def __len__(self) -> int:
        """The number of items."""
        return len(self.items)

    def __eq__(self, other: object) -> bool:
        """Whether the same items go the same way."""
        return isinstance(other, FanOut) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # the items may be lists and dicts

    def __repr__(self) -> str:
        """The call that made it."""
        into = f", into={self.into!r}" if self.into != DEFAULT_KEY else ""
        at = f", at={self.at!r}" if self.at != names.FAN_IN else ""
        return f"fan_out({list(self.items)!r}, to={list(self.to)!r}{into}{at})"

    def slices(self, view: EnvelopeView) -> Iterator[Slice]:
        """The slices: slice 0 for the origin, then one for each item.

        Args:
            view: the envelope with the changes of the handler's commands.
        """
        enclosing = view.headers.get(headers.FAN_IN)
        header: dict[str, Any] = {
            "actor": self.at,
            "set_id": ids.set_id(view.id, _generation(view), len(view.prev)),
            "origin_id": view.id,
            "slice_index": 0,
            "slice_count": len(self.items) + 1,
            "aggregation_key": self.into,
        }
        if enclosing is not None:
            header["outer"] = enclosing
        yield Slice(0, None, (self.at, *self._rest(view.next, enclosing)), header)
        for index, item in enumerate(self.items, start=1):
            yield Slice(index, item, (*self.to, self.at), header | {"slice_index": index})

    def _rest(self, ahead: list[str], enclosing: Any) -> list[str]:
        """The route of the merged envelope: the handler's `next` without a leading `at` that belongs to this set.

        A leading `at` may also belong to the enclosing set. Then it stays.
        """
        if ahead[:1] != [self.at]:
            return ahead
        rest = ahead[1:]
        is_of_enclosing_set = (
            isinstance(enclosing, Mapping) and enclosing.get("actor") == self.at and self.at not in rest
        )
        return ahead if is_of_enclosing_set else rest


def with_digits(output: Any, digits: Digits) -> Any:
    """An output in which the numbers that the handler passed on have the digits of the payload (`protocol §1.numbers`)."""
    try:
        if isinstance(output, FanOut):
            return FanOut(tuple(digits.restored(item) for item in output.items), output.to, output.into, output.at)
        return digits.restored(output)
    except RecursionError:
        return output  # the encoder refuses it, and says why


class OutputGuard:
    """Checks that a fan-out is the only output of its hop."""

    def __init__(self) -> None:
        self._frames = 0
        self._fanned_out = False

    def check(self, value: object) -> None:
        """Check the next output.

        Raises:
            FanOutError: the hop has a fan-out beside another output.
        """
        if self._fanned_out:
            what = "once more" if isinstance(value, FanOut) else "and gave another frame after it"
            raise FanOutError(f"the handler fanned out {what}; a fan_out is the only output of its hop")
        if isinstance(value, FanOut) and self._frames:
            raise FanOutError(
                f"the handler gave {self._frames} frame(s) and then fanned out; a fan_out is the only output of its hop"
            )
        self._fanned_out = isinstance(value, FanOut)
        self._frames += 1


def fan_out(items: Iterable[Any], *, to: Iterable[str], into: str = DEFAULT_KEY, at: str = names.FAN_IN) -> FanOut:
    """Send each item through its own actors, and collect the results in one envelope.

    Each item travels in an envelope with the route `to`, then `at`. The fan-in actor `at` collects the results as a list, in
    the order of the items. It inserts the list into the payload that this handler received. The merged envelope then
    follows the rest of this handler's route.

        yield from fan_out(items, to=["score"])                          # a generator
        for frames in fan_out(items, to=["score"]): yield frames         # an async generator, which has no `yield from`
        return fan_out(items, to=["score"])                              # a plain function

    A fan-out is the only output of its hop. Without items the merged envelope continues at once, with `[]`.

    Args:
        items: the payloads of the slices, 5000 at most.
        to: the actors that each item passes.
        into: JSON pointer to the list of results in the payload; missing parents are created.
        at: the fan-in actor.

    Raises:
        TypeError: `items` or `to` is a text or a mapping.
        ValueError: a name is not a valid actor name, `into` is not a JSON pointer, or there are too many items.
    """
    for name, value in (("items", items), ("to", to)):
        if isinstance(value, str | bytes | Mapping):
            raise TypeError(f"fan_out: {name} must be a list, not a {type(value).__name__}")
    payloads, actors = tuple(items), tuple(to)
    if len(payloads) > MAX_ITEMS:
        raise ValueError(f"fan_out: {len(payloads)} items; {MAX_ITEMS} at most, and sets nest: fan out in two steps")
    for actor in (*actors, at):
        names.check_label(actor, "fan_out: actor")
    return FanOut(payloads, actors, check_pointer(into), at)


def _generation(view: EnvelopeView) -> int:
    value = view.headers.get(headers.GENERATION)
    return value if isinstance(value, int) and value > 0 else 0
