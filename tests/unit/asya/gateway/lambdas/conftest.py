"""The consumer of the report queues in a mesh with four listed roles."""

import dataclasses

import msgspec
import pytest

from asya.gateway.lambdas.report_queues import ReportQueues
from asya.gateway.lambdas.wiring import build_report_queues
from asya.protocol.mesh_table import Gateway
from asya.senders.aws.role_list import RoleItems
from asya.senders.roles import ListChange
from asya.sidecar.lambdas.services import Services
from tests.doubles.envelopes import mesh
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.report_queues import NOW, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def _roles(world: MeshWorld) -> None:
    """Four roles of the mesh."""
    listed = {"AROACOMPLETION": "x-completion", "AROASINK": "x-sink", "AROAINFER": "infer", "AROAAPI": "x-gateway-api"}
    RoleItems(world.dynamodb, "asya-shop-sink").write(ListChange(listed, frozenset(), completes=True), NOW)


@pytest.fixture
def queues(world: MeshWorld, clock: Clock, _roles: None) -> ReportQueues:
    return build_report_queues(Services(world.services("x-reports").settings, clock))


@pytest.fixture
def meshes(world: MeshWorld, clock: Clock, _roles: None) -> ReportQueues:
    """The consumer of a mesh that may report to the gateway of the world as a foreign one."""
    table = msgspec.structs.replace(
        mesh(), gateway=Gateway(foreign_gateways=(world.gateway.url.removeprefix("http://"),))
    )
    settings = dataclasses.replace(world.services("x-reports", table).settings, gateway_url="https://own.example")
    return build_report_queues(Services(settings, clock))
