"""A handler of the API is built from the parts that its fields name."""

import pkgutil
from dataclasses import dataclass, fields
from typing import Any, Protocol, get_args, get_origin, get_type_hints

import pytest

from asya.function.aws.telemetry import Telemetry
from asya.gateway.call_table import CALLS
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.lambdas.api import ApiParts
from asya.protocol import names
from tests.doubles.gateway_functions import Gateway, settings_with

CLASSES = sorted({call.handler.rpartition(".")[0] for call in CALLS if call.function == names.GATEWAY_API})
WITH_BUILDERS = {
    "McpRoutes",
    "A2ARoutes",
    "TriggerRoutes",
    "SlotRoutes",
    "BackfillRoutes",
    "CancelRoutes",
    "ResumeRoutes",
}
"""What `build_api` makes itself: it has parts of its own, or others are made from it."""


@pytest.fixture
def parts(gateway: Gateway) -> ApiParts:
    settings = settings_with(gateway.environ, gateway.mesh)
    return ApiParts(HttpServices(settings, given_telemetry=Telemetry("flights", "test")))


@pytest.mark.parametrize("name", [each for each in CLASSES if each.rpartition(".")[2] not in WITH_BUILDERS])
def test_each_part_has_the_type_of_its_field(parts: ApiParts, name: str) -> None:
    kind = pkgutil.resolve_name(name)
    types = get_type_hints(kind)
    for field in fields(kind):
        assert _is_a(getattr(parts, field.name), types[field.name]), field.name
    assert isinstance(parts.handler(name), kind)


def _is_a(value: Any, kind: Any) -> bool:
    options = get_args(kind) if type(None) in get_args(kind) else (kind,)
    return any(
        callable(value) if get_origin(each) is not None else _is_protocol(each) or isinstance(value, each)
        for each in options
    )


def _is_protocol(kind: Any) -> bool:
    return Protocol in kind.__bases__


@dataclass(frozen=True)
class Stranger:
    """A handler that needs what the API does not have."""

    tasks: object
    moon: object


def test_a_field_that_names_no_part_is_told(parts: ApiParts) -> None:
    with pytest.raises(LookupError, match=r"Stranger\.moon: the API has no such part; add it to ApiParts"):
        parts.handler(f"{__name__}.Stranger")
