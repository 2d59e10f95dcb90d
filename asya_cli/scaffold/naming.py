"""The names that an author types, and the Python names that follow from them."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass

from asya.protocol.names import check_label, is_reserved

_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_GATEWAY_TOOLS = frozenset({"wait_for_task", "cancel_task", "resume_task"})
_TEST_MODULES = frozenset({"pytest", "tests"})
"""Modules that a test imports. A file of the same name would hide them."""


class InvalidNameError(ValueError):
    """A name that the protocol does not allow. `hint` is what to type instead."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


@dataclass(frozen=True)
class CodeNames:
    """The names of an actor or tool in Python.

    Attributes:
        module: the module and its function, such as `check_orders`.
        model: the type of the payload, such as `CheckOrders`.
    """

    module: str
    model: str


def check_namespace(name: str) -> str:
    """Return the name of a mesh, which is its folder and its namespace (`protocol §1`).

    Raises:
        InvalidNameError: It is not a DNS label.
    """
    return _label(name, "mesh", "asya init {}")


def check_actor(name: str, command: str) -> str:
    """Return the name of an actor (`protocol §1`).

    Args:
        name: the name.
        command: the command with `{}` for the name, for the hint.

    Raises:
        InvalidNameError: It is not a DNS label, or reserved.
    """
    _label(name, "actor", command)
    if is_reserved(name):
        similar = name.removeprefix("x-") if name.startswith("x-") else f"my-{name}"
        raise InvalidNameError(f"actor name {name!r} is reserved", f"Choose another one: {command.format(similar)}")
    return name


def check_tool(name: str, command: str) -> str:
    """Return the name of a tool (`protocol §13`).

    Args:
        name: the name.
        command: the command with `{}` for the name, for the hint.

    Raises:
        InvalidNameError: The name has other characters or is too long, or belongs to the gateway.
    """
    if not _TOOL.fullmatch(name):
        problem = f"tool name {name!r} should have 1 to 128 letters, digits, '_', '-' or '.'"
        raise InvalidNameError(problem, _try(command, re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:128].strip("-")))
    if name in _GATEWAY_TOOLS:
        raise InvalidNameError(f"tool name {name!r} belongs to the gateway", _try(command, f"my_{name}"))
    return name


def code_names(name: str) -> CodeNames:
    """Return names in Python for a checked name: `check-orders` → `check_orders` and `CheckOrders`."""
    from asya_infra.mesh_file.user_code import LIBRARIES

    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    module = "_".join(words).lower()
    model = "".join(word[0].upper() + word[1:] for word in words)
    if not module[:1].isalpha():
        module, model = f"actor_{module}", f"Actor{model}"
    taken = sys.stdlib_module_names | LIBRARIES | _TEST_MODULES
    if keyword.iskeyword(module) or module in taken:
        module = f"{module}_actor"
    if keyword.iskeyword(model):
        model = f"{model}Payload"
    return CodeNames(module.rstrip("_"), model)


def _label(name: str, what: str, command: str) -> str:
    try:
        return check_label(name, what)
    except ValueError as error:
        raise InvalidNameError(str(error), _try(command, _as_label(name))) from error


def _as_label(name: str) -> str:
    """Return the DNS label that is nearest to a text; it may be empty."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name.rstrip("/").rpartition("/")[2])
    return re.sub(r"[^a-z0-9]+", "-", spaced.lower())[:63].strip("-")


def _try(command: str, name: str) -> str:
    return f"Type: {command.format(name)}" if name else f"Type a name, such as: {command.format('shop')}"
