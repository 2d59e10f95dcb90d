"""Handing out items as slices that a fan-in actor puts together again (`protocol §9`).

    from asya import fan_out

    def split(payload):
        yield from fan_out(payload["airports"], to=["statistics"], into="/by_airport")

Standard library only: heavy jobs use it too, where nothing else is installed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from asya.protocol import headers, ids, names
from asya.protocol.pointer import check_pointer
from asya.runtime.abi import EnvelopeView

DEFAULT_KEY = "/results"
# A set's record lists its slices one by one; far more of them are better fanned out in two steps (sets nest).
MOST_ITEMS = 5000


class FanOutError(ValueError):
    """A fan-out beside other output; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of a fan-out, before it is a frame.

    Attributes:
        index: 0 is the origin, whose payload is the one received; `item` means nothing there.
        next: where it goes: what `route.next` has to be.
        header: the value of its header `x-asya-fan-in`.
    """

    index: int
    item: Any
    next: tuple[str, ...]
    header: dict[str, Any]


class FanOut:
    """A handler's wish to fan out: the one output of its hop. Iterating over it gives itself, once."""

    def __init__(self, items: tuple[Any, ...], to: tuple[str, ...], into: str, at: str) -> None:
        self.items = items
        self.to = to
        self.into = into
        self.at = at

    def __iter__(self) -> Iterator["FanOut"]:
        """For `yield from`."""
        yield self

    def __len__(self) -> int:
        """How many items are handed out."""
        return len(self.items)

    def slices(self, view: EnvelopeView) -> Iterator[Slice]:
        """Slice 0, the origin, then one for each item.

        Args:
            view: the envelope as the handler's commands have left it.
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
        """Where the merged envelope goes: the handler's `next`, less a leading `at` that stood there for this very set.

        A slice of an enclosing set has that set's fan-in actor ahead of it; this one must not be taken for ours.
        """
        if ahead[:1] != [self.at]:
            return ahead
        rest = ahead[1:]
        is_enclosing_sets = isinstance(enclosing, Mapping) and enclosing.get("actor") == self.at and self.at not in rest
        return ahead if is_enclosing_sets else rest


class OutputGuard:
    """Sees to it that a fan-out is the only output of its hop."""

    def __init__(self) -> None:
        self._frames = 0
        self._fanned_out = False

    def note(self, value: object) -> None:
        """Take note of one more output.

        Raises:
            FanOutError: if it may not stand beside those before.
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
    """Hand out items over actors of their own and get the results back in one envelope.

    Each item travels as an envelope with the route `to`, then `at`. There all results are put, in the order of the items, as a
    list into the payload that this handler received, and that goes on along the rest of its route.

        yield from fan_out(items, to=["score"])                          # a generator
        for frames in fan_out(items, to=["score"]): yield frames         # an async generator, which has no `yield from`
        return fan_out(items, to=["score"])                              # a plain function

    It is the only output of its hop. Without items the merged envelope leaves at once, with `[]`.

    Args:
        items: the payloads of the slices, 5000 at most.
        to: the actors that each item passes.
        into: JSON pointer to where the results go in the payload; missing parents are created.
        at: the fan-in actor.

    Raises:
        TypeError: if `items` or `to` is a text or a mapping, which are iterable by mistake only.
        ValueError: if a name is no actor's name, `into` no JSON pointer, or there are too many items.
    """
    for name, given in (("items", items), ("to", to)):
        if isinstance(given, str | bytes | Mapping):
            raise TypeError(f"fan_out: {name} must be a list, not a {type(given).__name__}")
    handed_out, actors = tuple(items), tuple(to)
    if len(handed_out) > MOST_ITEMS:
        raise ValueError(f"fan_out: {len(handed_out)} items; {MOST_ITEMS} at most, and sets nest: fan out in two steps")
    for actor in (*actors, at):
        names.check_label(actor, "fan_out: actor")
    return FanOut(handed_out, actors, check_pointer(into), at)


def _generation(view: EnvelopeView) -> int:
    value = view.headers.get(headers.GENERATION)
    return value if isinstance(value, int) and value > 0 else 0
