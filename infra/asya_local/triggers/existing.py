"""Creates the buckets and buses of triggers that exist outside of the mesh on AWS, where their owners have made them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asya_infra.mesh_file import to_table
from asya_infra.trigger_sources import DEFAULT_BUS, trigger_rules, watched_buckets
from asya_local.account.addresses import local_addresses
from asya_local.account.clients import aws_client

if TYPE_CHECKING:
    from asya.protocol.mesh_table import MeshTable
    from asya_infra.addresses import Addresses
    from asya_infra.mesh_file import LoadedMesh
    from asya_local.account.keys import AccessKey


@dataclass(frozen=True)
class ExistingSources:
    """The buckets and buses outside of a mesh that its triggers react to; the default bus is one of them."""

    buckets: tuple[str, ...]
    buses: tuple[str, ...]

    @classmethod
    def of(cls, table: MeshTable, addresses: Addresses) -> ExistingSources:
        """Return the sources of a mesh."""
        buses = {rule.bus for rule in trigger_rules(table, addresses)}
        return cls(tuple(watched_buckets(table, addresses)), tuple(sorted(buses)))

    @classmethod
    def of_file(cls, loaded: LoadedMesh) -> ExistingSources:
        """Return the sources of a mesh file on a local cloud."""
        return cls.of(to_table(loaded), local_addresses(loaded))


def create_existing(sources: ExistingSources, s3: Any, events: Any) -> None:
    """Create each bucket, with EventBridge turned on, and each bus, unless it is there.

    Args:
        sources: The buckets and buses.
        s3: The client of S3.
        events: The client of EventBridge.
    """
    for bucket in sources.buckets:
        s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
    for bus in sorted(set(sources.buses) - {DEFAULT_BUS}):
        with suppress(events.exceptions.ResourceAlreadyExistsException):
            events.create_event_bus(Name=bus)


def create_existing_at(sources: ExistingSources, endpoint: str, deployer: AccessKey) -> None:
    """Create the sources on a local cloud, before the mesh is deployed there."""
    create_existing(sources, aws_client("s3", endpoint, deployer), aws_client("events", endpoint, deployer))
