"""Gives the code of the mesh the real classes of time while freezegun has replaced them in every module.

Its replacements are not what msgspec, asyncio and comparisons of classes take. Modules of users keep them, so handlers see the
frozen time. time-machine replaces no class, and needs nothing.
"""

import asyncio
import datetime as datetime_module
import functools
import inspect
import sys
import time as time_module
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar
from unittest import mock

T = TypeVar("T")

_OWN = ("asya", "asya_infra", "asya_spark")
_NAMES = {
    datetime_module: {"datetime": "FakeDatetime", "date": "FakeDate"},
    time_module: {
        name: f"fake_{name}"
        for name in (
            *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
            *("gmtime", "localtime", "strftime"),
        )
    },
}


@contextmanager
def own_clock() -> Iterator[None]:
    """Let the modules of the mesh have the real classes and functions of time for a while."""
    freezegun: Any = sys.modules.get("freezegun.api")
    if freezegun is None or not freezegun.freeze_factories:
        yield
        return
    real = _real_values(freezegun)
    changed = _exchange(real)
    try:
        with mock.patch.object(_class_of_loops(), "time", lambda _: freezegun.real_monotonic()):
            yield
    finally:
        if freezegun.freeze_factories:
            for module, name, value in changed:
                setattr(module, name, value)


def on_own_clock(kind: type[T]) -> type[T]:
    """Let the public methods and properties of a class run with `own_clock`."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(kind, name, property(_wrapped(member.fget), doc=member.__doc__))
        elif inspect.isfunction(member):
            setattr(kind, name, _wrapped(member))
    return kind


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        with own_clock():
            return function(*arguments, **named)

    return run


def load_own_clock() -> None:
    """As `own_clock`, for modules that were imported since."""
    freezegun: Any = sys.modules.get("freezegun.api")
    if freezegun is not None and freezegun.freeze_factories:
        _exchange(_real_values(freezegun))


def plain_datetime(moment: datetime_module.datetime) -> datetime_module.datetime:
    """The moment as an instance of `datetime` itself, and not of a subclass."""
    kind: type[datetime_module.datetime] = next(base for base in type(moment).__mro__ if base.__module__ == "datetime")
    time = (moment.hour, moment.minute, moment.second, moment.microsecond)
    return kind(moment.year, moment.month, moment.day, *time, moment.tzinfo, fold=moment.fold)


def _class_of_loops() -> type[asyncio.AbstractEventLoop]:
    """The class of new loops. Its policy decides, and freezegun may have given it a clock of its own."""
    loop = asyncio.new_event_loop()
    loop.close()
    return type(loop)


def _real_values(freezegun: Any) -> Mapping[int, Any]:
    """The real value by the id of its replacement; a module of time is replaced by one with its real values."""
    values: dict[int, Any] = {}
    for module, names in _NAMES.items():
        own = ModuleType(module.__name__)
        vars(own).update(vars(module))
        for name, fake in names.items():
            real = getattr(freezegun, f"real_{name}")
            values[id(getattr(freezegun, fake))] = real
            setattr(own, name, real)
        values[id(module)] = own
    return values


def _exchange(values: Mapping[int, Any]) -> list[tuple[ModuleType, str, Any]]:
    """Exchange values in the modules of the mesh; returns what was there."""
    changed = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _OWN and name != __name__:
            for attribute, value in list(vars(module).items()):
                if id(value) in values:
                    setattr(module, attribute, values[id(value)])
                    changed.append((module, attribute, value))
    return changed
