"""The routes of an HTTP API as few doors, and which of them a request enters by (`protocol §13`, doors).

Pure: from the declared calls alone. API Gateway, `asya dev` and the kit have the same doors.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, takewhile
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from asya.api_call import ApiCall
from asya.protocol import names

ANY = "ANY"
_GREEDY = "{proxy+}"


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """One route of an HTTP API.

    Attributes:
        path: The path. `{id}` is any part, `{proxy+}` at the end any parts.
        function: The function behind it.
        is_open: Whether API Gateway asks for no identity.
        rate: Calls per second and their burst; None for those of the API.
    """

    method: str
    path: str
    function: str
    is_open: bool = False
    rate: tuple[int, int] | None = None

    @property
    def key(self) -> str:
        """The route key: `ANY /{proxy+}`."""
        return f"{self.method} {self.path}"

    def parameters(self, path: str) -> dict[str, str]:
        """Return the variable parts of a path that enters here, by name."""
        if self.prefix is not None:
            return {"proxy": path.removeprefix(self.prefix)}
        parts = zip(self.path.split("/"), path.split("/"), strict=True)
        return {part[1:-1]: value for part, value in parts if part.startswith("{")}

    @property
    def prefix(self) -> str | None:
        """The path before a greedy variable; None without one."""
        return self.path.removesuffix(_GREEDY) if self.path.endswith(_GREEDY) else None

    def _matches(self, method: str, path: str) -> bool:
        if self.method not in (ANY, method):
            return False
        if self.prefix is not None:
            return path.startswith(self.prefix)
        return _overlap(self.path, path) and "" not in path.split("/")[1:]

    @property
    def _rank(self) -> tuple[bool, int, bool]:
        parts = self.path.split("/")
        return self.prefix is None, sum(not part.startswith("{") for part in parts), self.method != ANY


def doors_of(calls: Iterable[ApiCall], main_rate: tuple[int, int] | None = None) -> tuple[Door, ...]:
    """Return the doors of an API with these calls, in the order of their route keys.

    An open call and a call with a rate have a door of their own. Every other call of the API function comes in at the main door,
    `ANY /{proxy+}`. Another function has one greedy door if no call of a greedy door lies there, else a door for each call. Two
    doors that differ in one part become one where no other call comes in.

    Args:
        calls: The calls.
        main_rate: The rate of the main door.
    """
    listed = tuple(calls)
    own = [call for call in listed if call.is_public or call.rate is not None]
    shared = [call for call in listed if call not in own]
    greedy = dict(_greedy_prefixes(shared))
    own += [call for call in shared if call.function not in greedy]
    shared = [call for call in shared if call.function in greedy]
    # A whole path goes before a greedy one, also where it has variables: what it would take from a shared door needs its own.
    while shadowed := [call for call in shared if any(_takes(other, call) for other in own)]:
        own += shadowed
        shared = [call for call in shared if call not in shadowed]
    doors = [
        Door(method=call.method, path=path, function=call.function, is_open=call.is_public, rate=call.rate)
        for call in own
        for path in call.paths
    ]
    while joined := _joined(doors, listed):
        one, other, both = joined
        doors = [both, *(door for door in doors if door not in (one, other))]
    doors += [
        Door(
            method=ANY,
            path=f"{prefix}{_GREEDY}",
            function=function,
            rate=main_rate if function == names.GATEWAY_API else None,
        )
        for function, prefix in greedy.items()
        if any(call.function == function for call in shared)
    ]
    return tuple(sorted(doors, key=lambda door: door.key))


_ESCAPES = re.compile(r"(?:%(?!25)[0-9A-Fa-f]{2})+")


def passed_path(raw: str) -> str:
    """Return the path that API Gateway passes to a function: decoded, but for the escape of the percent sign itself."""
    return _ESCAPES.sub(lambda escapes: unquote(escapes[0]), raw)


def choose(doors: Iterable[Door], method: str, path: str) -> Door | None:
    """Return the door that API Gateway chooses for a request: a whole path goes before a greedy one, then the more exact one.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html
    """
    matches = (door for door in doors if door._matches(method, path))
    return max(matches, key=lambda door: door._rank, default=None)


def _greedy_prefixes(calls: Sequence[ApiCall]) -> Iterator[tuple[str, str]]:
    """Yield the functions with a greedy door, and the path before its variable. Those with the most calls come first."""
    covered = [call for call in calls if call.function == names.GATEWAY_API]
    if covered:
        yield names.GATEWAY_API, "/"
    counts = Counter(call.function for call in calls if call not in covered)
    for function, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        theirs = [call for call in calls if call.function == function]
        prefix = _common_prefix(theirs)
        if count > 1 and prefix != "/" and not any(_may_lie_below(call.path, prefix) for call in covered):
            covered += theirs
            yield function, prefix


def _common_prefix(calls: Sequence[ApiCall]) -> str:
    """Return the path without variables, with a slash at its end, below which all these calls lie."""
    columns = zip(*(call.path.split("/")[:-1] for call in calls), strict=False)
    common = takewhile(lambda column: len({*column}) == 1 and not column[0].startswith("{"), columns)
    return "/".join([*(column[0] for column in common), ""])


def _takes(own: ApiCall, shared: ApiCall) -> bool:
    """Whether the door of one call would take requests for another one from the door of that."""
    return (
        own.method == shared.method
        and own.variables >= shared.variables
        and (own.function, own.is_public) != (shared.function, shared.is_public)
        and _overlap(own.path, shared.path)
    )


def _joined(doors: Sequence[Door], calls: Sequence[ApiCall]) -> tuple[Door, Door, Door] | None:
    """Find two doors that differ in one part of their paths, and one door for both that takes no request of other calls."""
    for one, other in combinations(doors, 2):
        ones, others = one.path.split("/"), other.path.split("/")
        differing = [number for number, (a, b) in enumerate(zip(ones, others, strict=False)) if a != b]
        is_joinable = (
            not one.is_open and one.rate is None and one.prefix is None and replace(one, path=other.path) == other
        )
        if not is_joinable or len(ones) != len(others) or len(differing) != 1:
            continue
        [at] = differing
        path = "/".join([*ones[:at], f"{{part{at}}}", *ones[at + 1 :]])
        strangers = (call for call in calls if (call.function, call.is_public) != (one.function, False))
        if not any(call.method == one.method and _overlap(path, call.path) for call in strangers):
            return one, other, replace(one, path=path)
    return None


def _may_lie_below(path: str, prefix: str) -> bool:
    """Whether a request for a call may lie below a path."""
    parts, above = path.split("/"), prefix.split("/")[:-1]
    return len(parts) > len(above) and _overlap("/".join(parts[: len(above)]), "/".join(above))


def _overlap(one: str, other: str) -> bool:
    """Whether a path may match both."""
    pairs = list(zip(ones := one.split("/"), others := other.split("/"), strict=False))
    return len(ones) == len(others) and all(a == b or a.startswith("{") or b.startswith("{") for a, b in pairs)
