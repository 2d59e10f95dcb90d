"""Refuses calls that the role of a function may not make, as AWS does.

The roles are those of the stacks: what manifests declare. So a call without a need fails here before it fails on AWS.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from asya import registry
from asya.protocol.mesh_table import MeshTable
from asya.testing.services.functions import ACCOUNT, REGION
from asya.testing.services.job_service import APPLICATION
from asya.testing.services.process import Process
from asya_infra.addresses import Addresses
from asya_infra.permissions.evaluation import Request, is_allowed
from asya_infra.permissions.needs import Place, function_grants

# The item calls of a transaction, as `TransactItems` names them.
_IN_TRANSACTIONS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
_EQUAL = re.compile(r"([#\w.-]+)\s*=\s*(:\w+)")


Requests = Callable[[str, Mapping[str, Any], Addresses], Iterator[Request]]
"""What a service asks IAM for a call, by the name of the method and its arguments."""

OBSERVERS: list[Callable[[Place, str, Request], None]] = []
"""Called with each call that the role of a function allows, once for equal ones: tests note which needs are made use of."""

_REMEMBERED = 20_000
"""How many allowed calls a mesh remembers: sweeps make the same ones each minute."""


@dataclass
class Permissions:
    """What the functions of a mesh may do.

    Attributes:
        refused: the calls that were refused, as `function action resource`.
    """

    table: MeshTable
    refused: list[str] = field(default_factory=list)
    _statements: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    _allowed: set[tuple[Any, ...]] = field(default_factory=set)

    @cached_property
    def addresses(self) -> Addresses:
        """The addresses of the mesh in the account of the simulation."""
        return Addresses(
            namespace=self.table.namespace,
            partition="aws",
            region=REGION,
            account=ACCOUNT,
            url_suffix="amazonaws.com",
        )

    @cached_property
    def place(self) -> Place:
        """The mesh with the addresses of its resources."""
        return Place(addresses=self.addresses, table=self.table, application=APPLICATION)

    def check(self, function: str, requests: Iterable[Request]) -> None:
        """Refuse calls that the role of a function may not make; others than functions have no role.

        Raises:
            ClientError: `AccessDenied`.
        """
        statements = self._of(function)
        for request in requests if statements else ():
            call = (function, request.action, request.resource, *request.context.items())
            if call in self._allowed:
                continue
            if not is_allowed(statements.get(request.action, ()), request):
                self.refused.append(f"{function} {request.action} {request.resource}")
                answer: Any = {
                    "Error": {
                        "Code": "AccessDenied",
                        "Message": f"{function} is not authorized to perform {request.action} on {request.resource}: "
                        "its manifest declares no such need",
                    },
                    "ResponseMetadata": {"HTTPStatusCode": 403},
                }
                raise ClientError(answer, request.action.partition(":")[2])
            if len(self._allowed) >= _REMEMBERED:
                self._allowed.clear()
            self._allowed.add(call)
            for observer in OBSERVERS:
                observer(self.place, function, request)

    def guard(self, process: Process, client: Any, requests: Requests) -> "Guarded":
        """Return a client of a process, whose calls the role of its function must allow."""
        return Guarded(client, process.name.partition("/")[0], self, requests)

    def _of(self, function: str) -> dict[str, list[dict[str, Any]]]:
        """Return the statements of a function by action: no action is a pattern. Without a role there are none."""
        if function not in self._statements:
            # A step has the role of the clock on AWS. Here it may do what it declares itself.
            own = registry.of(self.table)
            known = function in self.table.actors or function in own.functions or function in own.steps
            by_action: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for grant in function_grants(function, self.place) if known else ():
                for action in grant.actions:
                    by_action[action].append({**grant.statement(), "Action": action})
            self._statements[function] = by_action
        return self._statements[function]


@dataclass(frozen=True)
class Guarded:
    """A client of a function, whose calls its role must allow."""

    client: Any
    function: str
    permissions: Permissions
    requests: Requests

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        if name == "get_paginator":
            return lambda name: _Pages(self, found(name), name)
        if not callable(found) or name == "exceptions":
            return found

        def call(**arguments: Any) -> Any:
            self.check(name, arguments)
            return found(**arguments)

        return call

    def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a call that the role does not allow."""
        self.permissions.check(self.function, self.requests(name, arguments, self.permissions.addresses))


@dataclass(frozen=True)
class _Pages:
    guard: Guarded
    pages: Any
    call: str

    def paginate(self, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Yield pages."""
        self.guard.check(self.call, arguments)
        yield from self.pages.paginate(**arguments)


def of_queues(name: str, arguments: Mapping[str, Any], addresses: Addresses) -> Iterator[Request]:
    """Yield what SQS asks IAM."""
    queue = arguments["QueueUrl"].rpartition("/")[2]
    yield Request(f"sqs:{_action(name.removesuffix('_batch'))}", addresses.arn("sqs", queue))


def of_objects(name: str, arguments: Mapping[str, Any], addresses: Addresses) -> Iterator[Request]:
    """Yield what S3 asks IAM."""
    if name == "list_objects_v2":
        yield Request("s3:ListBucket", addresses.bucket_arn(addresses.bucket), {"s3:prefix": arguments["Prefix"]})
        return
    action = {"head_object": "GetObject"}.get(name, _action(name))
    yield Request(f"s3:{action}", addresses.objects_arn(addresses.bucket, arguments["Key"]))


def of_items(name: str, arguments: Mapping[str, Any], addresses: Addresses) -> Iterator[Request]:
    """Yield what DynamoDB asks IAM."""
    if name == "transact_write_items":
        for item in arguments["TransactItems"]:
            ((call, content),) = item.items()
            yield from _on_items(_IN_TRANSACTIONS[call], content["TableName"], [_key(content)], content, addresses)
    elif name == "batch_get_item":
        for table, content in arguments["RequestItems"].items():
            yield from _on_items("BatchGetItem", table, map(_partition, content["Keys"]), content, addresses)
    elif name == "batch_write_item":
        for table, entries in arguments["RequestItems"].items():
            keys = [_key(next(iter(entry.values()))) for entry in entries]
            yield from _on_items("BatchWriteItem", table, keys, {}, addresses)
    elif name == "query":
        yield from _on_items("Query", arguments["TableName"], _queried(arguments), arguments, addresses)
    else:
        yield from _on_items(_action(name), arguments["TableName"], [_key(arguments)], arguments, addresses)


def of_events(name: str, arguments: Mapping[str, Any], addresses: Addresses) -> Iterator[Request]:
    """Yield what EventBridge asks IAM."""
    for entry in arguments["Entries"]:
        bus = addresses.arn("events", f"event-bus/{entry.get('EventBusName', 'default')}")
        yield Request(f"events:{_action(name)}", bus, {"events:source": entry["Source"]})


def of_job_runs(name: str, arguments: Mapping[str, Any], addresses: Addresses) -> Iterator[Request]:
    """Yield what EMR Serverless asks IAM."""
    application = addresses.application_arn(arguments["applicationId"])
    job_run = f"{application}/jobruns/{arguments.get('jobRunId', 'new')}"
    is_on_application = name in {"list_job_runs", "start_job_run"}
    yield Request(f"emr-serverless:{_action(name)}", application if is_on_application else job_run)
    if name == "start_job_run":
        service = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
        yield Request("iam:PassRole", arguments["executionRoleArn"], service)
        if arguments.get("tags"):
            yield Request("emr-serverless:TagResource", job_run)


def of_metrics(name: str, _arguments: Mapping[str, Any], _addresses: Addresses) -> Iterator[Request]:
    """Yield what CloudWatch asks IAM."""
    yield Request(f"cloudwatch:{_action(name)}", "*")


def _on_items(
    action: str, table: str, keys: Iterable[str], arguments: Mapping[str, Any], addresses: Addresses
) -> Iterator[Request]:
    leading = tuple(keys)
    context: dict[str, str | tuple[str, ...]] = {"dynamodb:LeadingKeys": leading} if leading else {}
    if "ProjectionExpression" in arguments:
        aliases = arguments.get("ExpressionAttributeNames", {})
        named = (each.strip() for each in arguments["ProjectionExpression"].split(","))
        context["dynamodb:Attributes"] = tuple(aliases.get(each, each) for each in named)
    index = f"/index/{arguments['IndexName']}" if "IndexName" in arguments else ""
    yield Request(f"dynamodb:{action}", addresses.arn("dynamodb", f"table/{table}{index}"), context)


def _queried(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the partition key of a query. No need names keys of an index."""
    aliases = arguments.get("ExpressionAttributeNames", {})
    for name, value in _EQUAL.findall(arguments.get("KeyConditionExpression", "")):
        if aliases.get(name, name) == "pk" and "IndexName" not in arguments:
            yield str(arguments["ExpressionAttributeValues"][value]["S"])


def _action(method: str) -> str:
    """Return the name of a call by that of its method."""
    return "".join(part.capitalize() for part in method.split("_"))


def _key(content: Mapping[str, Any]) -> str:
    return _partition(content.get("Key") or content["Item"])


def _partition(item: Mapping[str, Any]) -> str:
    return str(item["pk"]["S"])
