"""Checks the health of a local cloud by component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya_local.account import AccessKey, aws_client, read_secret
from asya_local.processes import cloud_processes, read_records
from asya_local.servers import EMR, MINISTACK, healthy
from asya_local.state_folder import LocalConnection, StateFolder

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ComponentHealth:
    """The health of one component: a server or the mesh."""

    name: str
    up: bool
    pid: int | None = None
    url: str = ""
    note: str = ""


def check_health(state: Path) -> list[ComponentHealth]:
    """Check the servers and the mesh. Changes nothing, and needs no lock."""
    folder = StateFolder.at(state)
    records = {record.name: record for record in read_records(folder)}
    secret = read_secret(folder.secret)
    components = []
    for name, path in ((MINISTACK, "/_ministack/health"), (EMR, "/_local/health")):
        if name == EMR and name not in records and folder.dev.exists():
            continue  # a mesh of `asya dev` without jobs needs none
        record = records.get(name)
        process = record.process() if record else None
        url = f"http://127.0.0.1:{record.port}" if record else ""
        is_up = process is not None and healthy(url + path, secret)
        workers = (
            f"{max(0, len(cloud_processes(folder)) - len(records))} workers" if is_up and name == MINISTACK else ""
        )
        components.append(ComponentHealth(name, is_up, process.pid if process else None, url, workers))
    is_up = all(component.up for component in components)
    return [*components, _mesh(LocalConnection.read(folder.connection) if is_up else None, components[0].url)]


def _mesh(connection: LocalConnection | None, endpoint: str) -> ComponentHealth:
    if connection is None or connection.endpoint_url != endpoint:
        return ComponentHealth("mesh", up=False, note="not deployed")
    name = f"mesh {connection.namespace}"
    try:
        key = AccessKey(connection.access_key, connection.secret_key)
        sqs = aws_client("sqs", connection.endpoint_url, key)
        queues = sqs.list_queues(QueueNamePrefix=f"asya-{connection.namespace}-").get("QueueUrls", [])
    except (ClientError, BotoCoreError) as error:
        return ComponentHealth(name, up=False, url=connection.gateway_url, note=str(error))
    actors = sum(not url.endswith("-dlq") for url in queues)
    return ComponentHealth(name, bool(actors), url=connection.gateway_url, note=f"{actors} queues")
