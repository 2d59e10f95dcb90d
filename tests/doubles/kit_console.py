"""The console before a mesh of the test kit: the page calls the functions of its gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from asya.testing.deployment import TEST_USER
from asya_cli.console.gateway import GatewayAnswer
from asya_cli.console.redrives import RedriveAnswer, RedriveRequest, Redrives
from tests.doubles.kit_clients import OPERATOR_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from tests.doubles.kit_cloud import KitCloud

T = TypeVar("T")


@dataclass(frozen=True)
class KitGateway:
    """The gateway of a mesh that lives in a thread of its own, while the server of the console has others.

    Attributes:
        thread: The one thread that made the mesh, and alone may let it work.
    """

    cloud: KitCloud
    thread: Executor

    def ask(self, do: Callable[[], T]) -> T:
        """Do something with the mesh, in its thread."""
        return self.thread.submit(do).result()

    def call(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> GatewayAnswer:
        """Make a call of the page."""
        mesh = self.cloud.kit.cloud
        answer = self.ask(
            lambda: mesh.request(method, target, body, dict(headers), user_arn=TEST_USER, user_id=OPERATOR_ID)
        )
        content = str(answer.get("body") or "").encode()
        return GatewayAnswer(answer["statusCode"], answer.get("headers") or {}, iter([content] if content else []))

    def redrive(self, request: RedriveRequest) -> RedriveAnswer:
        """Redrive dead letters of the mesh."""
        return self.ask(lambda: Redrives(self.cloud.mesh)(request))
