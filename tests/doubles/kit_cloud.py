"""The test kit in the place of a deployed cloud: tests of a deployed mesh run on it as they are."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from asya.client import connection, mesh_client
from asya.client.mesh_client import MeshClient
from asya.protocol import names
from asya.protocol.keys import S3Prefix
from asya.testing import Mesh
from asya.testing.deployment import TEST_USER
from asya.testing.services.functions import BUCKET, REGION
from asya.testing.services.gateway import URL
from asya.testing.services.roles import role_id
from tests.cloud.deployed_cloud import DeployedCloud
from tests.doubles.kit_clients import DATA_PREFIX, OPERATOR_ID, client_of
from tests.doubles.kit_environment import KitEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class KitConnection:
    """In the place of `asya.client.connection.Connection`."""

    kit: Mesh
    region: str = REGION
    gateway_url: str = URL
    endpoint_url: None = None

    @property
    def data(self) -> S3Prefix:
        return S3Prefix(BUCKET, DATA_PREFIX)

    @property
    def results(self) -> S3Prefix:
        return S3Prefix(BUCKET, "results/")

    @property
    def namespace(self) -> str:
        return self.kit.cloud.table.namespace

    def sqs(self) -> Any:
        return client_of(self.kit, "sqs")

    def s3(self) -> Any:
        return client_of(self.kit, "s3")

    def dynamodb(self) -> Any:
        return client_of(self.kit, "dynamodb")


class KitMeshClient(MeshClient):
    """The client of commands and tests; its calls reach the functions of the gateway without HTTP."""

    def exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        kit = self.connection.kit  # type: ignore[attr-defined]
        response = kit.cloud.request(method, path, body, dict(headers), user_arn=TEST_USER, user_id=OPERATOR_ID)
        return response["statusCode"], str(response.get("body") or "").encode()


@dataclass(frozen=True)
class KitCloud(DeployedCloud):
    """A mesh of the test kit."""

    @property
    def kit(self) -> Mesh:
        """The mesh itself."""
        return self.mesh.connection.kit  # type: ignore[attr-defined,no-any-return]

    def mesh_sqs(self) -> Any:
        return client_of(self.kit, "sqs", f"{role_id(names.GATEWAY_API)}:session")

    def client(self, service: str) -> Any:
        return client_of(self.kit, service)


@contextmanager
def kit_cloud(mesh_file: Path, **options: Any) -> Iterator[KitCloud]:
    """A mesh of the test kit, which the tests and the commands of this process use meanwhile.

    Args:
        mesh_file: the mesh file.
        options: those of `Mesh`.
    """
    kit = Mesh(mesh_file, **options)
    outside: Any = KitConnection(kit)
    with ExitStack() as stack:
        stack.enter_context(KitEnvironment(kit).active())
        stack.enter_context(mock.patch.object(connection, "read_local", lambda _: outside))
        stack.enter_context(mock.patch.object(mesh_client, "MeshClient", KitMeshClient))
        yield KitCloud(KitMeshClient(outside), Path("memory"))
