"""What a mesh of `asya dev` is made of: the mesh file, its table, its addresses, and the settings of each function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import structs

from asya import registry
from asya.function.aws.settings import Settings, SparkSettings
from asya.protocol.mesh_table import Batch, MeshTable, encode_table, with_version
from asya_infra.mesh_file import to_table
from asya_infra.mesh_file.legacy.variables import handler_variables
from asya_local.account import ACCOUNT_ID, REGION, local_addresses
from asya_local.emr.settings import ApplicationSettings

if TYPE_CHECKING:
    from pathlib import Path

    from asya_infra.addresses import Addresses
    from asya_infra.mesh_file import LoadedMesh

CODE_BUCKET = f"cdk-asya-assets-{ACCOUNT_ID}-{REGION}"
"""The bucket with the code of jobs."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One state of a mesh.

    Attributes:
        loaded: The mesh file.
        gateway_url: The base URL of the gateway.
        spark: The code of jobs; None in a mesh without heavy actors.
    """

    loaded: LoadedMesh
    gateway_url: str
    spark: SparkSettings | None = None

    @cached_property
    def table(self) -> MeshTable:
        """The actor table. The runs of heavy actors wait for no further envelopes: the author waits for the result."""
        table = to_table(self.loaded, existing_application=ApplicationSettings.application_id)
        actors = {
            name: structs.replace(actor, batch=Batch(size=actor.batch.size, window=0.0))
            if actor.kind == "spark"
            else actor
            for name, actor in table.actors.items()
        }
        return with_version(structs.replace(table, actors=actors))

    @cached_property
    def addresses(self) -> Addresses:
        """The ARNs and URLs of the mesh."""
        return local_addresses(self.loaded)

    def settings(self, actor: str) -> Settings:
        """Return the settings of a function.

        Args:
            actor: The actor or system function.
        """
        addresses = self.addresses
        return Settings(
            table=self.table,
            actor=actor,
            region=REGION,
            bucket=addresses.bucket,
            data_uri=addresses.data.uri,
            results_uri=addresses.results.uri,
            queue_url_prefix=addresses.queue_url_prefix,
            gateway_url=self.gateway_url,
            spark=self.spark,
        )

    @property
    def light_actors(self) -> list[str]:
        """The actors with handlers."""
        kinds = registry.of(self.table).handler_kinds
        return [name for name, actor in self.table.actors.items() if actor.kind in kinds]

    @property
    def heavy_actors(self) -> list[str]:
        """The actors with jobs."""
        return [name for name, actor in self.table.actors.items() if actor.kind == "spark"]

    def variables(self, actor: str) -> dict[str, str]:
        """Return the environment variables of a light actor that other actors do not have."""
        own = handler_variables(self.table.actors[actor])
        return {**self.loaded.mesh.actors[actor].env, **own, "ASYA_ACTOR": actor}

    def common_variables(self, folder: Path) -> dict[str, str]:
        """Return the environment variables that all light actors have.

        Args:
            folder: The folder with `mesh.json`.
        """
        addresses = self.addresses
        return {
            "LAMBDA_TASK_ROOT": str(folder),
            "ASYA_BUCKET": addresses.bucket,
            "ASYA_DATA_URI": addresses.data.uri,
            "ASYA_RESULTS_URI": addresses.results.uri,
            "ASYA_QUEUE_URL_PREFIX": addresses.queue_url_prefix,
            "ASYA_GATEWAY_URL": self.gateway_url,
        }

    def table_bytes(self) -> bytes:
        """Return the content of `mesh.json`, which each new process of handlers reads."""
        return encode_table(self.table)

    def with_spark(self, spark: SparkSettings | None) -> Deployment:
        """Return the deployment with this code of jobs."""
        return replace(self, spark=spark)
