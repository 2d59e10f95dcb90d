"""Stops and starts the reading of queues of a deployed mesh."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from asya.protocol import names
from tests.cloud.deployed_cloud import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cloud.deployed_cloud import DeployedCloud


@contextmanager
def unread(cloud: DeployedCloud, *queues: str) -> Iterator[None]:
    """Stops reading these queues; their messages wait."""
    client, namespace = cloud.client("lambda"), cloud.mesh.connection.namespace
    queue_names = {names.queue_name(namespace, queue) for queue in queues}
    pages = client.get_paginator("list_event_source_mappings").paginate()
    mappings = [
        mapping["UUID"]
        for page in pages
        for mapping in page["EventSourceMappings"]
        if mapping["EventSourceArn"].rpartition(":")[2] in queue_names
    ]
    assert len(mappings) == len(queue_names)
    set_enabled(cloud, mappings, enabled=False)
    try:
        yield
    finally:
        set_enabled(cloud, mappings, enabled=True)


def set_enabled(cloud: DeployedCloud, mappings: list[str], *, enabled: bool) -> None:
    """Enables or disables event source mappings, and waits until they are."""
    client, state = cloud.client("lambda"), "Enabled" if enabled else "Disabled"
    for mapping in mappings:
        client.update_event_source_mapping(UUID=mapping, Enabled=enabled)
    until(
        lambda: all(client.get_event_source_mapping(UUID=each)["State"] == state for each in mappings) or None,
        f"the event source mappings to be {state.lower()}",
    )
