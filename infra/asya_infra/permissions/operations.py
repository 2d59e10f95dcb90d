"""Permissions of the functions behind the calls for operators. They change nothing of the mesh."""

from asya.dead_letters.letters import watched_actors
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import DUE_INDEX, LISTED_INDEX
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.grant import Grant

_RECEIVE = ("sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
_MOST_IN_BOTH_FORMS = 120
_LOG_FILES = "runs/*/logs"


def logs(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-logs: reads what functions and job runs have logged, and no payload, result or message."""
    return [
        common.write_logs(addresses, names.LOGS),
        Grant(("dynamodb:Query",), (addresses.table_arn("tasks"),)),
        _read_groups(addresses, table),
        *(_read_files(addresses) if has_heavy_actors(table) else []),
    ]


def operations(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """x-operations: reads job runs, dead letters and numbers. It can send and delete no message."""
    return [
        common.write_logs(addresses, names.OPERATIONS),
        Grant(("dynamodb:Query",), _failed_tasks(addresses)),
        Grant(("dynamodb:BatchGetItem", "dynamodb:GetItem"), (addresses.table_arn("tasks"),)),
        Grant(("dynamodb:GetItem",), (addresses.table_arn("breaker"),)),
        Grant(("sqs:GetQueueAttributes",), tuple(addresses.queue_arn(actor) for actor in table.actors)),
        Grant(("cloudwatch:GetMetricData",), ("*",), reason="Metrics are no resources of IAM."),
        Grant(_RECEIVE, tuple(addresses.dlq_arn(actor) for actor in watched_actors(table))),
        *_read_readers(addresses),
        *(_read_runs(addresses) if has_heavy_actors(table) else []),
    ]


def _read_readers(addresses: Addresses) -> list[Grant]:
    """Allow reading which functions read the queues of the mesh, and the reserved concurrency of each: no code, no variable."""
    functions = addresses.arn("lambda", f"function:{names.function_name(addresses.namespace, '*')}")
    return [
        Grant(("lambda:ListEventSourceMappings",), ("*",), reason="The list of mappings is no resource of IAM."),
        Grant(
            ("lambda:GetFunctionConcurrency",),
            (functions,),
            reason="A role has no room for the names of 300 functions beside those of their queues, and the answer is a number.",
        ),
    ]


def _failed_tasks(addresses: Addresses) -> tuple[str, ...]:
    """The tasks table, and the indexes of failed and of overdue tasks."""
    table = addresses.table_arn("tasks")
    return (table, *(f"{table}/index/{index}" for index in (LISTED_INDEX, DUE_INDEX)))


def has_heavy_actors(table: MeshTable) -> bool:
    """Whether the mesh has job runs."""
    return any(actor.kind == "spark" for actor in table.actors.values())


def _read_groups(addresses: Addresses, table: MeshTable) -> Grant:
    """Allow searching the log groups of actors and system functions, never a pattern of names: those of a stage begin alike."""
    functions = (*table.actors, *names.SYSTEM_FUNCTIONS)
    groups = [addresses.arn("logs", f"log-group:{addresses.log_group_name(each)}") for each in functions]
    # AWS checks the form with the log streams, the local cloud the one without. A large mesh has no room for both.
    forms = ("", ":*") if len(groups) <= _MOST_IN_BOTH_FORMS else (":*",)
    resources = tuple(group + form for form in forms for group in groups)
    return Grant(
        ("logs:FilterLogEvents",), resources, reason="Log streams of a function's log group; Lambda names them."
    )


def _read_runs(addresses: Addresses) -> list[Grant]:
    """Allow reading the records of job runs, and their manifests, results and heartbeats."""
    return [
        Grant(("dynamodb:GetItem", "dynamodb:Query"), (addresses.table_arn("pending"),)),
        common.objects(addresses, common.READ, "runs"),
        common.list_keys(addresses, "runs"),
    ]


def _read_files(addresses: Addresses) -> list[Grant]:
    """Allow reading the records of job runs, and the logs that EMR Serverless writes of them."""
    return [
        Grant(("dynamodb:GetItem",), (addresses.table_arn("pending"),)),
        common.objects(addresses, common.READ, _LOG_FILES),
        common.list_keys(addresses, "runs"),
    ]
