"""The handlers of the simulated mesh: `tests.simulation.inputs.handlers.NAME` is the handler of actor NAME."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_handlers: dict[str, Callable[[Any], Any]] = {}


@contextmanager
def install_handlers(handlers: Mapping[str, Callable[[Any], Any]]) -> Iterator[None]:
    """Install the handlers by actor."""
    before = dict(_handlers)
    _handlers.clear()
    _handlers.update(handlers)
    try:
        yield
    finally:
        _handlers.clear()
        _handlers.update(before)


def replace_handler(actor: str, handler: Callable[[Any], Any]) -> None:
    """Install another handler of an actor; processes that have loaded the former one keep it."""
    _handlers[actor] = handler


def handler_name(actor: str) -> str:
    """Return the `handler` setting of an actor."""
    return f"{__name__}.{actor.replace('-', '_')}"


def __getattr__(name: str) -> Callable[[Any], Any]:
    try:
        return _handlers[name.replace("_", "-")]
    except KeyError:
        raise AttributeError(name) from None
