"""Takes the tests of `tests/cloud` that the test kit can run, with their fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.same_verdict.left_out import LEFT_OUT

if TYPE_CHECKING:
    from types import ModuleType


def comparable(module: ModuleType) -> dict[str, Any]:
    """The tests and the fixtures of a file of `tests/cloud`, without those that are left out.

    A module of tests on the kit adds them to its names, and replaces the fixtures that need a deployed cloud.
    """
    reasons = LEFT_OUT.get(module.__name__.rpartition(".")[2], {})
    assert isinstance(reasons, dict), f"{module.__name__} is left out: {reasons}"
    return {
        name: value
        for name, value in vars(module).items()
        if (name.startswith("test_") and name not in reasons) or type(value).__name__ == "FixtureFunctionDefinition"
    }
