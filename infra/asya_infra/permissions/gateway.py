"""Permissions of the gateway's functions."""

import re
from collections.abc import Iterable

from asya.dead_letters.letters import watched_actors
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import CHILDREN_INDEX, DUE_INDEX, LISTED_INDEX, ROLE_PREFIX, WAITING_INDEX
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant

_API_HOST = re.compile(r"([a-z0-9]+)\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


def ingest(addresses: Addresses) -> list[Grant]:
    """The ingest function: records reports of operators, and tells functions the states of tasks."""
    return [common.write_logs(addresses, names.GATEWAY_INGEST), common.table(addresses, "tasks")]


def list_roles(addresses: Addresses) -> list[Grant]:
    """x-roles: lists the roles of the mesh, and nothing else in the table of claims."""
    own_keys = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": [f"{ROLE_PREFIX}*"]}}
    actions = ("dynamodb:PutItem", "dynamodb:UpdateItem")
    return [
        common.write_logs(addresses, names.ROLES),
        Grant(actions, (addresses.table_arn("sink"),), conditions=own_keys),
    ]


def take_reports(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-reports: records the reports of the mesh, keeps those that it refuses, and passes those of other meshes on."""
    return [
        common.write_logs(addresses, names.REPORTS),
        *(common.consume_queue(addresses, queue) for queue in names.REPORT_QUEUES),
        common.table(addresses, "tasks"),
        common.objects(addresses, common.WRITE, "reports/refused"),
        common.read_roles(addresses),
        *_report_to_other_meshes(addresses, table.gateway.foreign_gateways),
        *_tell_triggers(addresses, table),
    ]


def _tell_triggers(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """Allow notices of ended tasks, and slots, to the function that starts tasks (`protocol §16`)."""
    return [common.send_messages(addresses, {names.TRIGGERS})] if table.triggers else []


def _report_to_other_meshes(addresses: Addresses, hosts: Iterable[str]) -> list[Grant]:
    """Allow the call for reports of these gateways, and no other call; APIs of other accounts take no foreign roles."""
    apis = sorted({api for host in hosts if (api := api_of(host)) is not None})
    arns = tuple(
        f"arn:{addresses.partition}:execute-api:{region}:{addresses.account}:{api_id}/$default/POST/api/v1/mesh/events"
        for api_id, region in apis
    )
    return [Grant(("execute-api:Invoke",), arns)] if arns else []


def api_of(host: str) -> tuple[str, str] | None:
    """The id and the region of the API at a host; None if the host is not API Gateway's own."""
    match = _API_HOST.fullmatch(host)
    return (match[1], match[2]) if match else None


def api(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """The API function: creates, shows, resumes, cancels, replays and redrives tasks (`protocol §4`, `§12`)."""
    return [
        common.write_logs(addresses, names.GATEWAY_API),
        common.table(addresses, "tasks"),
        _query(addresses, LISTED_INDEX, CHILDREN_INDEX, DUE_INDEX),
        # A redrive sends to every queue that has dead letters.
        common.send_messages(addresses, (*watched_actors(table), *names.REPORT_QUEUES)),
        common.objects(addresses, common.WRITE, "inbox"),
        *common.judge_senders(addresses),
        # A cancellation claims the end of its task.
        common.claims(addresses),
        common.read_claims(addresses),
        *_replay(addresses),
        *(_set_replays(addresses) if common.fan_in_actors(table) else []),
    ]


def stream(addresses: Addresses, function: str, key_arn: str) -> list[Grant]:
    """A function that streams tasks and issues stream tokens.

    Args:
        function: the name of the function.
        key_arn: the ARN of the key that signs the tokens.
    """
    return [
        common.write_logs(addresses, function),
        Grant(("dynamodb:Query",), (addresses.table_arn("tasks"),)),
        common.sign_tokens(key_arn),
    ]


def sweep(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-task-sweep: fails tasks past their deadline, unless ends wait in their queue, finds lost ones, and sends due slots."""
    return [
        common.write_logs(addresses, names.TASK_SWEEP),
        Grant(("sqs:GetQueueAttributes",), (addresses.queue_arn(names.ENDS),)),
        common.read_outages(addresses),
        common.table(addresses, "tasks"),
        _query(addresses, DUE_INDEX, LISTED_INDEX),
        *_tell_triggers(addresses, table),
        *([_query(addresses, WAITING_INDEX)] if table.triggers else []),
    ]


def _query(addresses: Addresses, *indexes: str) -> Grant:
    table = addresses.table_arn("tasks")
    return Grant(("dynamodb:Query",), tuple(f"{table}/index/{index}" for index in indexes))


def _set_replays(addresses: Addresses) -> list[Grant]:
    """Allow checking sets, for redrives and replays, and recording the replay of a set."""
    return [common.read_sets(addresses), common.record_set_replays(addresses)]


def _replay(addresses: Addresses) -> list[Grant]:
    """Allow reading the sources of a replay: failed envelopes, checkpoints and kept inputs."""
    results = addresses.results
    stored = addresses.objects_arn(results.bucket, f"{results.prefix}*")
    reason = "A replay may start from any stored copy of an envelope."
    return [
        common.objects(addresses, common.READ, "hops", "dlq", "paused", "payloads", "inbox"),
        Grant(("s3:GetObject",), (stored,), reason=reason),
        # It finds kept frames, and never reads them.
        common.list_keys(addresses, "hops", "dlq", "paused", "payloads", "inbox", "buffered", "frames"),
        common.list_bucket_keys(addresses, results.bucket, results.prefix),
    ]
