"""Finds needs that no suite makes use of: least privilege is what functions do, and no more.

`pytest --used-needs FOLDER` notes which needs allow the calls of functions, in the kit and in simulations. `make tests` does so.
Then `python -m tests.used_needs FOLDER` fails for a need that nothing used, unless it has a reason below.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asya import registry
from asya.manifest import ActorFunction, Function
from asya.needs import Calls, Group, Items, Keys, Messages, Need, Objects, Payloads, split
from asya.predicates import OPTION_OF
from asya.protocol import names
from asya.testing import permissions
from asya_infra.permissions.evaluation import Request, is_allowed
from asya_infra.permissions.needs import grants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from asya_infra.permissions.needs import Place

REASONS: dict[str, tuple[str, ...]] = {
    "They know the role of each function. A deployment lists them; tests/cloud reads the list.": (
        "*: dynamodb:* sink ROLE#[*]",
        "x-roles: dynamodb:* sink KEY#*",
    ),
    "They give each webhook its key; see capabilities/triggers/aws.": (
        "x-hooks: secretsmanager:GetSecretValue the keys of webhooks",
        "x-hooks: ssm:GetParameter the keys of webhooks",
    ),
    "They have the lines of functions in memory; tests/cloud searches groups of logs.": (
        "x-operations: logs:FilterLogEvents the log groups of the mesh's functions",
    ),
    "They have no client of Lambda; tests/cloud asks for the readers of queues.": (
        "x-operations: lambda:GetFunctionConcurrency the functions whose names begin with that of the mesh",
        "x-operations: lambda:ListEventSourceMappings all event source mappings",
    ),
    "They have one mesh; tests/unit/asya/gateway/lambdas/test_report_queues.py passes reports on.": (
        "x-reports: execute-api:Invoke the call for reports of the gateways in `gateway.foreign_gateways`",
    ),
    "The event source mapping of Lambda sends there.": ("x-push-feed: sqs:SendMessage x-push-dlq",),
    "A message that ends its function again and again; see function/lambdas/test_starts.py.": (
        "*: sqs:SendMessage {own}-dlq",
    ),
    "A message that was moved from a dead-letter queue; see senders/test_entry.py.": ("*: dynamodb:* sink LETTER#[*]",),
    "A message of a sender outside; see senders/lambdas/test_admission.py.": ("*: dynamodb:UpdateItem sink OWNER#[*]",),
    "A dead letter of an actor, of an outage, or of a slice; see capabilities/dead_letters/lambdas.": (
        "x-dlq: dynamodb:GetItem sink OUTAGE",
        "x-dlq: sqs:SendMessage the fan-in actors",
        "x-dlq: sqs:SendMessage x-reports",
    ),
    "A failed message that is too large; see function/aws/test_claim_check.py.": (
        "kind end: s3:PutObject payloads of {own}",
        "kind pause: s3:PutObject payloads of x-sump",
        "kind pause: s3:PutObject payloads of {own}",
        "kind spark: s3:PutObject payloads of x-sink",
        "kind spark: s3:PutObject payloads of {own}",
        "kind wait: s3:PutObject payloads of the actors whose retries wait in x-wait",
        "kind wait: s3:PutObject payloads of x-sink",
        "kind wait: s3:PutObject payloads of x-sump",
        "kind wait: s3:PutObject payloads of {own}",
        "x-dispatch: s3:PutObject payloads of x-sink",
        "x-dispatch: s3:PutObject payloads of x-sump",
        "x-sink: s3:PutObject payloads of x-sink",
    ),
    "A large message of a sender; see function/aws/test_claim_check.py.": (
        "kind fan_in: s3:GetObject bucket/inbox/{own}/[*]",
        "x-checkpoint: s3:GetObject bucket/inbox/{own}/[*]",
        "x-gateway-api: s3:GetObject bucket/inbox/[*]",
        "x-triggers: s3:PutObject bucket/inbox/x-resume/[*]",
        "x-triggers: s3:PutObject bucket/inbox/x-sink/[*]",
        "kind fan_in: s3:ListBucket bucket/inbox/{own}/[*]",
        "x-checkpoint: s3:ListBucket bucket/inbox/{own}/[*]",
        "x-gateway-api: s3:ListBucket bucket/inbox/[*]",
    ),
    "A large message to the function; see capabilities/pauses/lambdas/test_resume.py.": (
        "x-resume: s3:GetObject bucket/payloads/{own}/[*]",
        "x-resume: s3:ListBucket bucket/payloads/{own}/[*]",
    ),
    "A retry of an end actor; see ends/lambdas/test_end_actor.py.": ("kind end: sqs:SendMessage {own}",),
    "Waits of retries, and pauses by waits; see capabilities/pauses/lambdas.": (
        "kind wait: dynamodb:UpdateItem sink",
        "kind wait: s3:GetObject bucket/paused/[*]",
        "kind wait: s3:ListBucket bucket/paused/[*]",
        "kind wait: s3:PutObject bucket/paused/[*]",
        "kind wait: sqs:SendMessage the actors whose retries wait in x-wait",
        "kind wait: sqs:SendMessage x-sink",
        "kind wait: sqs:SendMessage x-sump",
        "kind wait: sqs:SendMessage {own}",
    ),
    "Ends of the actor's own messages, and reports of moved ones; see ends/lambdas.": (
        "x-sink: sqs:SendMessage x-reports",
        "x-sink: sqs:SendMessage x-sink",
        "x-sump: sqs:SendMessage x-reports",
        "x-sump: sqs:SendMessage x-sump",
    ),
    "A later generation removes an end of an earlier one; see ends/lambdas/test_sump_claims.py.": (
        "x-sump: s3:*Object results/canceled/[*]",
        "x-sump: s3:DeleteObject results/sump/[*]",
        "x-sump: s3:DeleteObject results/{failed}[*]",
        "x-sump: s3:DeleteObject results/{succeeded}[*]",
        "x-sump: s3:GetObject results/{succeeded}[*]",
    ),
    "A cancellation of a lane with pauses and job runs; see triggers/lambdas/test_lane_queue.py.": (
        "x-triggers: dynamodb:BatchWriteItem tasks",
        "x-triggers: s3:GetObject bucket/paused/[*]",
        "x-triggers: s3:ListBucket bucket/paused/[*]",
        "x-triggers: sqs:SendMessage x-completion",
        "x-triggers: sqs:SendMessage x-resume",
        "x-triggers: sqs:SendMessage x-sink",
    ),
    "A replay from each kind of copy; see capabilities/dead_letters.": (
        "x-gateway-api: s3:GetObject bucket/dlq/[*]",
        "x-gateway-api: s3:GetObject bucket/payloads/[*]",
        "x-gateway-api: s3:ListBucket bucket/payloads/[*]",
    ),
    "A redrive of dead reports; see capabilities/dead_letters.": (
        "x-gateway-api: sqs:SendMessage x-ends",
        "x-gateway-api: sqs:SendMessage x-reports",
    ),
    "Runs that EMR Serverless refuses, and actors that a deployment removed; see heavy/lambdas.": (
        "x-dispatch: dynamodb:DeleteItem pending",
        "x-dispatch: s3:GetObject bucket/pending/[*]",
        "x-dispatch: s3:ListBucket bucket/pending/[*]",
        "x-dispatch: sqs:SendMessage x-reports",
        "x-dispatch: sqs:SendMessage x-sump",
    ),
    "Only meshes of many actors have it; see gateway/operations/test_logs.py.": ("x-logs: *",),
    "Job runs, circuit breakers and numbers; see gateway/operations.": (
        "x-operations: dynamodb:BatchGetItem tasks",
        "x-operations: dynamodb:GetItem breaker",
        "x-operations: dynamodb:GetItem pending",
        "x-operations: dynamodb:Query pending",
        "x-operations: dynamodb:Query tasks/due",
        "x-operations: s3:GetObject bucket/runs/[*]",
        "x-operations: s3:ListBucket bucket/runs/[*]",
    ),
    "The store of tasks.": (
        "x-gateway-api: dynamodb:BatchWriteItem tasks",
        "x-reports: dynamodb:DeleteItem tasks",
        "x-reports: dynamodb:GetItem tasks",
        "x-reports: dynamodb:Query tasks",
        "x-reports: dynamodb:UpdateItem tasks",
        "x-task-sweep: dynamodb:BatchWriteItem tasks",
        "x-task-sweep: dynamodb:DeleteItem tasks",
        "x-task-sweep: dynamodb:UpdateItem tasks",
    ),
    "The store of pending envelopes and job runs.": (
        "kind spark: dynamodb:BatchWriteItem pending",
        "kind spark: dynamodb:DeleteItem pending",
        "x-completion: dynamodb:BatchWriteItem pending",
        "x-reconcile: dynamodb:BatchWriteItem pending",
        "x-reconcile: dynamodb:DeleteItem pending",
        "x-reconcile: dynamodb:PutItem pending",
    ),
    "Lists of tasks by deadline; see tests/unit/asya/tasks/aws.": ("x-gateway-api: dynamodb:Query tasks/due",),
}
"""Needs that the kit and simulations make no use of, as patterns, by the reason why they stay.

"They" are the kit and simulations. Folders are those of tests/unit/asya, whose doubles make the call.
"""


def declared() -> Iterator[str]:
    """Yield every need of every function, in parts."""
    product = registry.PRODUCT
    # What the clock needs its steps declare.
    own = [each for each in product.functions.values() if each.name != names.CLOCK]
    for declaration in (*own, *product.steps.values(), *product.actor_functions.values()):
        for need in declaration.needs:
            yield from (label(declaration, part) for part in split(need))


def label(declaration: Function | ActorFunction, need: Need) -> str:
    """Return a part of a need as a line. One of an option is one need, although actors of every kind may have the option."""
    owner = declaration.name if isinstance(declaration, Function) else f"kind {declaration.kind}"
    if need.when.__name__.startswith(OPTION_OF):
        owner = f"option {need.when.__name__.removeprefix(OPTION_OF)}"
    match need:
        case Messages():
            return f"{owner}: sqs:{need.calls[0]} {_name(need.queues[0])}"
        case Items():
            where = "".join([need.table, *(f"/{each}" for each in need.indexes), *(f" {key}" for key in need.keys)])
            return f"{owner}: dynamodb:{need.calls[0]} {where}"
        case Objects():
            return f"{owner}: s3:{need.calls[0]} {need.store}/{need.keys[0]}"
        case Keys():
            return f"{owner}: s3:ListBucket {need.store}/{need.keys[0]}"
        case Payloads():
            return f"{owner}: s3:PutObject payloads of {_name(need.to[0]) if need.to else 'all actors'}"
        case Calls():
            return f"{owner}: {need.calls[0]} {need.on.value}"


class Notes:
    """The needs that calls have used."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._unused: dict[tuple[int, str], dict[str, dict[str, list[dict[str, Any]]]]] = {}
        self._places: list[Place] = []

    def note(self, place: Place, function: str, request: Request) -> None:
        """Note the needs that allow a call; see `asya.testing.permissions.OBSERVERS`."""
        if request.action == "s3:GetObject":
            self._note_lists(place, function, request)
        unused = self._unused_of(place, function)[request.action]
        if not unused:
            return
        keys = request.context.get("dynamodb:LeadingKeys", ())
        single = [replace(request, context={**request.context, "dynamodb:LeadingKeys": (key,)}) for key in keys]
        for line, statements in list(unused.items()):
            if any(is_allowed(statements, each) for each in single or [request]):
                self.used.add(line)
                del unused[line]

    def _note_lists(self, place: Place, function: str, request: Request) -> None:
        """Note that S3 asks for the list of keys too: for a missing object it would answer 403 otherwise."""
        bucket, _, key = request.resource.partition("/")
        self.note(place, function, Request("s3:ListBucket", bucket, {"s3:prefix": key}))

    def _unused_of(self, place: Place, function: str) -> dict[str, dict[str, list[dict[str, Any]]]]:
        """Return the statements of the needs that no call has used yet, by action and line."""
        key = (id(place), function)
        if key not in self._unused:
            self._places.append(place)  # its id stays its own
            declaration = registry.function_of(function, place.table)
            found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(dict)
            parts = (part for need in declaration.needs if need.when(place.table, function) for part in split(need))
            for part in parts:
                if (line := label(declaration, part)) in self.used:
                    continue
                for grant in grants(part, function, place):
                    found[grant.actions[0]].setdefault(line, []).append(grant.statement())
            self._unused[key] = found
        return self._unused[key]

    def write(self, folder: Path) -> None:
        """Write the notes of this process beside those of others."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{os.getpid()}.json").write_text(json.dumps(sorted(self.used)))


def read(folder: Path) -> set[str]:
    """Read the notes of all processes."""
    return {line for file in folder.glob("*.json") for line in json.loads(file.read_text())}


def problems(lines: Iterable[str], used: set[str], reasons: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the needs that nothing used and that have no reason."""
    patterns = [pattern for each in reasons.values() for pattern in each]
    return [line for line in sorted({*lines} - used) if not any(fnmatchcase(line, each) for each in patterns)]


def start() -> Notes:
    """Note the needs from now on."""
    notes = Notes()
    permissions.OBSERVERS.append(notes.note)
    return notes


def _name(queue: str | Group) -> str:
    return queue.value if isinstance(queue, Group) else queue


def main() -> None:
    """Judge the notes in a folder."""
    found = problems(declared(), read(Path(sys.argv[1])), REASONS)
    sys.exit(
        "\n".join(["Take these needs from the manifests, or give a reason in tests/used_needs.py:", *found])
        if found
        else 0
    )


if __name__ == "__main__":
    main()
