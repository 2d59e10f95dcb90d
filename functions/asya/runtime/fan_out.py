"""Fans items and branches out as slices of a set, which a fan-in actor merges (`protocol §9`).

    from asya import branches, fan_out

    def split(payload):
        yield from fan_out(payload["airports"], to=["statistics"], into="/by_airport")

    def study(payload):
        yield from branches({"stats": ["statistics"], "features": ["extract", "embed"]}, into="/parts")

Standard library only, because heavy jobs use this module too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from enum import Enum
from typing import Any, Final, NamedTuple, cast

from asya.protocol import headers, ids, names
from asya.protocol.json_pointer import check_pointer
from asya.protocol.numbers import Digits
from asya.runtime.abi import EnvelopeView

DEFAULT_KEY = "/results"
# All slices but the origin's. More items need a fan-out in two steps, because sets nest.
MAX_ITEMS = headers.MAX_SLICES - 1


class _Received(Enum):
    """The type of `RECEIVED`."""

    RECEIVED = "the payload as received"

    def __repr__(self) -> str:
        """The name of the value."""
        return self.name


RECEIVED: Final = _Received.RECEIVED
"""The item of a slice that carries the payload of the hop, as it was received."""


class FanOutError(ValueError):
    """A fan-out is not the only output of its hop, or its set has too many enclosing ones."""


class Slice(NamedTuple):
    """One slice of a fan-out, before it becomes a frame.

    Attributes:
        number: 0 for the origin.
        item: the payload; `RECEIVED` for that of the hop, which the origin has.
        next: the `route.next` of the slice.
        header: the value of the header `x-asya-fan-in`.
    """

    number: int
    item: Any
    next: tuple[str, ...]
    header: dict[str, Any]


class FanOut:
    """The result of `fan_out` or `branches`: the only output of its hop. Iteration yields this object once.

    Attributes:
        items: the payloads of the slices 1 to N; `RECEIVED` for that of the hop.
        to: the actors that each item passes, or those of each item.
        into: JSON pointer to the results.
        at: the fan-in actor.
        branches: the name of each item; None if the results are a list.
    """

    def __init__(
        self,
        items: tuple[Any, ...],
        to: tuple[str, ...] | tuple[tuple[str, ...], ...],
        into: str,
        at: str,
        branches: tuple[str, ...] | None = None,
    ) -> None:
        self.items = items
        self.to = to
        self.into = into
        self.at = at
        self.branches = branches

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
        """The call that makes an equal one."""
        into = f", into={self.into!r}" if self.into != DEFAULT_KEY else ""
        at = f", at={self.at!r}" if self.at != names.FAN_IN else ""
        to = [each if isinstance(each, str) else list(each) for each in self.to]
        if self.branches is not None:
            given = zip(self.branches, self.items, strict=True)
            payloads = {name: item for name, item in given if item is not RECEIVED}
            own = f", payloads={payloads!r}" if payloads else ""
            return f"branches({dict(zip(self.branches, to, strict=True))!r}{own}{into}{at})"
        return f"fan_out({list(self.items)!r}, to={to!r}{into}{at})"

    def slices(self, view: EnvelopeView) -> Iterator[Slice]:
        """The slices: slice 0 for the origin, then one for each item.

        Args:
            view: the envelope with the changes of the handler's commands.

        Raises:
            FanOutError: the set would have too many enclosing ones.
        """
        enclosing = view.headers.get(headers.FAN_IN)
        _check_depth(enclosing)
        header: dict[str, Any] = {
            "actor": self.at,
            "set_id": ids.set_id(view.id, _generation(view), len(view.prev)),
            "origin_id": view.id,
            "slice_index": 0,
            "slice_count": len(self.items) + 1,
            "aggregation_key": self.into,
        }
        if self.branches is not None:
            header["branches"] = list(self.branches)
        if enclosing is not None:
            header["outer"] = enclosing
        yield Slice(0, RECEIVED, (self.at, *self._rest(view.next, enclosing)), header)
        for index, item in enumerate(self.items, start=1):
            yield Slice(index, item, (*self._route(index), self.at), header | {"slice_index": index})

    def _route(self, number: int) -> Iterable[str]:
        own = self.to[number - 1] if self.to and not isinstance(self.to[0], str) else self.to
        return cast("Iterable[str]", own)

    def map_items(self, change: Callable[[Any], Any]) -> "FanOut":
        """The fan-out with changed items. A payload that goes on as it was received has nothing to change."""
        items = tuple(item if item is RECEIVED else change(item) for item in self.items)
        return FanOut(items, self.to, self.into, self.at, self.branches)

    def name_of(self, number: int) -> str:
        """What the caller calls the item of a slice, in errors."""
        return f"items[{number - 1}]" if self.branches is None else f"the branch {self.branches[number - 1]!r}"

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


def _check_depth(enclosing: Any) -> None:
    """Check that one more set may open within that of a slice header."""
    for _ in range(headers.MAX_ENCLOSING_SETS + 1):
        if not isinstance(enclosing, Mapping):
            return
        enclosing = enclosing.get("outer")
    raise FanOutError(
        f"the handler fanned out within more than {headers.MAX_ENCLOSING_SETS} sets, and a set has {headers.MAX_ENCLOSING_SETS} "
        "enclosing sets at most; fan out into more items in fewer steps"
    )


def with_digits(output: Any, digits: Digits) -> Any:
    """An output in which the numbers that the handler passed on have the digits of the payload (`protocol §1.numbers`)."""
    try:
        if isinstance(output, FanOut):
            return output.map_items(digits.restored)
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


def fan_out(
    items: Iterable[Any],
    *,
    to: Iterable[str] | Iterable[Iterable[str]],
    into: str = DEFAULT_KEY,
    at: str = names.FAN_IN,
) -> FanOut:
    """Send each item through its own actors, and collect the results in one envelope.

    Each item travels in an envelope with the route `to`, then `at`. The fan-in actor `at` collects the results as a list, in
    the order of the items. It inserts the list into the payload that this handler received. The merged envelope then
    follows the rest of this handler's route.

        yield from fan_out(items, to=["score"])                          # a generator
        for frames in fan_out(items, to=["score"]): yield frames         # an async generator, which has no `yield from`
        return fan_out(items, to=["score"])                              # a plain function
        return fan_out(items, to=[["read", "score"], ["score"]])         # a route for each of two items

    A fan-out is the only output of its hop. Without items the merged envelope continues at once, with `[]`.

    Args:
        items: the payloads of the slices, 5000 at most.
        to: the actors that each item passes, in order; or a list of actors for each item.
        into: JSON pointer to the list of results in the payload; missing parents are created.
        at: the fan-in actor.

    Raises:
        TypeError: `items` or `to` is a text or a mapping, or `to` has names and lists.
        ValueError: a name is not a valid actor name, `into` is not a JSON pointer, there are too many items, or the lists in
            `to` are not as many as the items.
    """
    payloads = tuple(_listed(items, "fan_out: items"))
    if len(payloads) > MAX_ITEMS:
        raise ValueError(f"fan_out: {len(payloads)} items; {MAX_ITEMS} at most, and sets nest: fan out in two steps")
    ways = _route(to, "fan_out: to")
    if not all(isinstance(each, str) for each in ways):
        ways = _own_routes(ways, len(payloads))
    return _checked("fan_out", FanOut(payloads, ways, check_pointer(into), at))


def branches(
    routes: Mapping[str, Iterable[str]],
    *,
    payloads: Mapping[str, Any] | None = None,
    into: str = DEFAULT_KEY,
    at: str = names.FAN_IN,
) -> FanOut:
    """Send a payload through several routes side by side, and join their results by name in one envelope.

    The fan-in actor `at` collects the results as an object, with the names in the order of `routes`. It inserts the object
    into the payload that this handler received. The merged envelope then follows the rest of this handler's route.

        yield from branches({"stats": ["statistics"], "features": ["extract", "embed"]}, into="/parts")

    A branch whose route is empty gives its payload. As with `fan_out`, branches are the only output of their hop, and each
    may fan out itself.

    Args:
        routes: the actors of each branch, in order, by the name of the branch; 100 branches at most.
        payloads: the payloads of the branches that get another one than this handler has received.
        into: JSON pointer to the object of results in the payload; missing parents are created.
        at: the fan-in actor.

    Raises:
        TypeError: `routes` or `payloads` is no mapping, or a route is a text or a mapping.
        ValueError: a name is not a valid actor name or branch name, `into` is not a JSON pointer, there are too many
            branches, or `payloads` names a branch that `routes` does not have.
    """
    own = {} if payloads is None else payloads
    for name, value in (("routes", routes), ("payloads", own)):
        if not isinstance(value, Mapping):
            raise TypeError(f"branches: {name} must be a dict by the name of the branch, not a {type(value).__name__}")
    try:
        found = names.check_branches(tuple(routes))
    except ValueError as error:
        raise ValueError(f"branches: {error}") from None
    if unknown := [name for name in own if name not in routes]:
        raise ValueError(f"branches: payloads names {unknown[0]!r}, but routes has no such branch: {', '.join(found)}")
    ways = tuple(_route(route, f"branches: the route of {name!r}") for name, route in routes.items())
    items = tuple(own.get(name, RECEIVED) for name in found)
    return _checked("branches", FanOut(items, ways, check_pointer(into), at, found))


def _checked(call: str, output: FanOut) -> FanOut:
    """A fan-out whose actors have possible names."""
    for actor in (output.at, *output.to):
        for name in (actor,) if isinstance(actor, str) else actor:
            if not isinstance(name, str):
                raise TypeError(f"{call}: a route has the names of actors, not a {type(name).__name__}")
            names.check_label(name, f"{call}: actor")
    return output


def _listed(value: Any, what: str) -> Iterable[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{what} must be a list, not a {type(value).__name__}")
    return value


def _route(value: Any, what: str) -> tuple[Any, ...]:
    if isinstance(value, Set):
        raise TypeError(f"{what} must be a list, not a {type(value).__name__}, which has no order")
    return tuple(_listed(value, what))


def _own_routes(to: tuple[Any, ...], count: int) -> tuple[tuple[Any, ...], ...]:
    """The route of each of `count` items."""
    if any(isinstance(each, str) for each in to):
        raise TypeError(
            "fan_out: to has names of actors and lists of them; give one list of actors for all items, or a list for each item"
        )
    if len(to) != count:
        raise ValueError(
            f"fan_out: to has {len(to)} routes for {count} items; give one list of actors for all items, or a list for each item"
        )
    return tuple(_route(route, f"fan_out: to[{index}]") for index, route in enumerate(to))


def _generation(view: EnvelopeView) -> int:
    value = view.headers.get(headers.GENERATION)
    return value if isinstance(value, int) and value > 0 else 0
