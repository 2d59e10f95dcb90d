"""The calls that capabilities declare: each names what is there."""

import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from asya import registry
from asya.api_call import ApiCall, Named
from asya.gateway.call_table import CALLS
from asya.manifest import Requests


def names_in(template: Any) -> Iterator[Named]:
    match template:
        case Named():
            yield template
        case dict():
            for each in template.values():
                yield from names_in(each)
        case list() | tuple():
            for each in template:
                yield from names_in(each)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.route)
def test_a_call_names_a_handler_a_function_and_types(call: ApiCall) -> None:
    own, request, now = inspect.signature(pkgutil.resolve_name(call.handler)).parameters
    assert (own, request.lstrip("_"), now.lstrip("_")) == ("self", "request", "now")
    assert isinstance(registry.PRODUCT.functions[call.function].called_by, Requests)
    for each in names_in([call.body, dict(call.answers), dict(call.query), dict(call.headers)]):
        assert each.load() is not None


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.route)
def test_the_summary_of_a_call_for_operators_says_so(call: ApiCall) -> None:
    assert ("; for operators" in call.summary) == (call.rights == "operators")


def test_no_two_calls_have_one_route() -> None:
    keys = [call.route for call in CALLS]
    assert len(keys) == len(set(keys))


def test_the_declarations_import_no_handler_and_no_type() -> None:
    """Each function that answers calls imports them at its cold start."""
    code = (
        "import sys, asya.protocol.mesh_table, asya.protocol.names; before = set(sys.modules); "
        "import asya.gateway.call_table; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = {name for name in done.stdout.split() if not name.endswith(".http_calls")}
    packages = {call.handler.partition(".")[0] for call in CALLS}
    assert packages == {"asya"}
    assert {name for name in modules if pkgutil.resolve_name(name).__file__.rpartition("/")[2] != "__init__.py"} <= {
        *(
            "asya.api_call",
            "asya.gateway.call_table",
            "asya.predicates",
            "pkgutil",
            "zipimport",
            "importlib.util",
            "importlib._abc",
        ),
    }
