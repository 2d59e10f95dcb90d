"""Changes valid input at random: values, keys and bytes (strategies of hypothesis).

A change of a valid message reaches deeper than random bytes, because most of it stays valid.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]

# Values that readers often take for something else.
_ODD = (
    None,
    True,
    False,
    0,
    -1,
    1,
    10**30,
    -(2**63) - 1,
    2**31,
    0.1,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "x" * 300,
    "\x00",
    "\ud800",
    "\ufffe",
    "é\u202e",
    "..",
    "../../secret",
    "2026-11-20T12:00:00Z",
    "2026-13-45T99:00:00Z",
    "x-sink",
    "x-fan-in",
    "nowhere",
    [],
    {},
    [[]],
    [None],
    {"": None},
    ["infer"] * 3,
)
_KEYS = ("", "id", "status", "x-asya-fan-in", "__proto__", "é", "\ud800", "x" * 300)
_MAX_CHANGES = 3
_MAX_DEPTH = 400


def odd_values() -> st.SearchStrategy[Any]:
    """Odd JSON values, small JSON values and deep nesting."""
    leaves = st.sampled_from(_ODD).map(deepcopy) | st.integers() | st.floats() | st.text(max_size=8)
    trees = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=5,
    )
    # A copy, because a further change may alter it in place.
    return st.sampled_from(_ODD).map(deepcopy) | trees | st.integers(2, _MAX_DEPTH).map(_nested)


@st.composite
def mutated(draw: st.DrawFn, valid: Any) -> Any:
    """Draw a JSON value with up to three changes: a value replaced, removed, repeated, wrapped or added."""
    value = deepcopy(valid)
    for _ in range(draw(st.integers(0, _MAX_CHANGES))):
        value = _changed(value, draw(st.sampled_from(_paths(value))), draw)
    return value


@st.composite
def mutated_text(draw: st.DrawFn, valid: Any) -> str:
    """Draw the JSON text of a mutated value; sometimes characters are cut out or put in as well."""
    text = json.dumps(draw(mutated(valid)))
    if draw(st.integers(0, 3)):
        return text
    start = draw(st.integers(0, len(text)))
    stop = draw(st.integers(start, min(start + 8, len(text))))
    return text[:start] + draw(st.text(max_size=4)) + text[stop:]


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def _paths(value: Any) -> list[Path]:
    """The paths of all values, the whole first, but not of those below 20 levels."""
    paths: list[Path] = [()]
    for path in paths:
        inner = _at(value, path)
        if len(path) == 20:
            continue
        if isinstance(inner, dict):
            paths += [(*path, key) for key in inner]
        elif isinstance(inner, list):
            paths += [(*path, index) for index in range(len(inner))]
    return paths


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _changed(value: Any, path: Path, draw: st.DrawFn) -> Any:
    """The value with one change at a path."""
    if not path:
        return draw(odd_values())
    holder, key = _at(value, path[:-1]), path[-1]
    change: Callable[[Any, Any, st.DrawFn], None] = draw(st.sampled_from((_replace, _remove, _repeat, _wrap, _add)))
    change(holder, key, draw)
    return value


def _replace(holder: Any, key: Any, draw: st.DrawFn) -> None:
    holder[key] = draw(odd_values())


def _remove(holder: Any, key: Any, _draw: st.DrawFn) -> None:
    del holder[key]


def _repeat(holder: Any, key: Any, _draw: st.DrawFn) -> None:
    """Repeat a list's entry; move an object's value to another key."""
    if isinstance(holder, list):
        holder.append(deepcopy(holder[key]))
    else:
        holder[f"{key}s"] = holder.pop(key)


def _wrap(holder: Any, key: Any, _draw: st.DrawFn) -> None:
    holder[key] = [holder[key]]


def _add(holder: Any, _key: Any, draw: st.DrawFn) -> None:
    if isinstance(holder, list):
        holder.append(draw(odd_values()))
    else:
        holder[draw(st.sampled_from(_KEYS))] = draw(odd_values())
