"""Creates the buckets and buses of triggers that exist outside of the mesh on AWS, where their owners have made them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from asya_infra.addresses import Addresses
from asya_infra.mesh_file import to_table
from asya_infra.trigger_sources import DEFAULT_BUS, trigger_rules, watched_buckets
from asya_local.accounts import aws_client
from asya_local.keys import ACCOUNT_ID, REGION, AccessKey

if TYPE_CHECKING:
    from asya.protocol.mesh_table import MeshTable
    from asya_infra.mesh_file import LoadedMesh


def create_existing(table: MeshTable, addresses: Addresses, s3: Any, events: Any) -> None:
    """Create each bucket, with EventBridge turned on, and each bus, unless it is there.

    Args:
        table: The actor table.
        addresses: The addresses of the mesh.
        s3: The client of S3.
        events: The client of EventBridge.
    """
    for bucket in watched_buckets(table, addresses):
        s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
    for bus in sorted({rule.bus for rule in trigger_rules(table, addresses)} - {DEFAULT_BUS}):
        with suppress(events.exceptions.ResourceAlreadyExistsException):
            events.create_event_bus(Name=bus)


def create_existing_of(loaded: LoadedMesh, endpoint: str, deployer: AccessKey) -> None:
    """Create what `create_existing` does on a local cloud, before the mesh is deployed there."""
    storage = loaded.mesh.storage
    addresses = Addresses(
        namespace=loaded.namespace,
        partition="aws",
        region=REGION,
        account=ACCOUNT_ID,
        url_suffix="amazonaws.com",
        data_bucket=storage.data_bucket,
        results_bucket=storage.results_bucket,
    )
    s3, events = (aws_client(service, endpoint, deployer) for service in ("s3", "events"))
    create_existing(to_table(loaded), addresses, s3, events)
