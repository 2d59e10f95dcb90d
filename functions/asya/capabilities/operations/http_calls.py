"""Declares the calls of the gateway about logs, numbers, job runs and dead letters, for operators (`protocol §13`)."""

from asya.api_call import CURSOR, LIMIT, Apart, ApiCall, Named, Schema
from asya.protocol import names

_LINES: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": Named("asya.capabilities.operations.log_lines.LARGEST_LIMIT"),
    "default": Named("asya.capabilities.operations.log_lines.DEFAULT_LIMIT"),
}
_SINCE: Schema = {"type": "string", "format": "date-time", "description": "the earliest time"}
_SOURCE: Schema = {"type": "string", "enum": Named("asya.capabilities.operations.log_lines.RUN_SOURCES")}

_APART = Apart(names.LOGS, Named("asya.predicates.with_many_actors"))
"""The role of one function has no room for the queues and the log groups of many actors."""

TASK_LINES = ApiCall(
    method="GET",
    path="/api/v1/operations/logs/{id}",
    handler="asya.gateway.operations.logs.LogRoutes.of_task",
    function=names.OPERATIONS,
    apart=_APART,
    summary="Read what functions have logged about a task, and its job runs; for operators",
    details="See [lines](#lines)",
    in_console=True,
    rights="operators",
    answers={200: Named("asya.capabilities.operations.log_lines.LogPage")},
    errors=(400, 404),
    query={"since": _SINCE, "source": _SOURCE, "limit": _LINES, "cursor": CURSOR},
)
ACTOR_LINES = ApiCall(
    method="GET",
    path="/api/v1/operations/actors/{actor}/logs",
    handler="asya.gateway.operations.logs.LogRoutes.of_actor",
    function=names.OPERATIONS,
    apart=_APART,
    summary="Read what an actor has logged, by default in the last hour; for operators",
    in_console=True,
    rights="operators",
    answers={200: Named("asya.capabilities.operations.log_lines.LogPage")},
    errors=(400, 404),
    query={"since": _SINCE, "limit": _LINES, "cursor": CURSOR},
)
RUN_LINES = ApiCall(
    method="GET",
    path="/api/v1/operations/runs/{run_id}/logs",
    handler="asya.gateway.operations.logs.LogRoutes.of_run",
    function=names.OPERATIONS,
    apart=_APART,
    summary="Read what driver and executors of a job run have written; for operators",
    in_console=True,
    rights="operators",
    answers={200: Named("asya.capabilities.operations.log_lines.LogPage")},
    errors=(400, 404),
    query={"source": _SOURCE, "limit": _LINES, "cursor": CURSOR},
)
NUMBERS = ApiCall(
    method="GET",
    path="/api/v1/operations/mesh",
    handler="asya.gateway.operations.numbers.NumberRoutes.all",
    function=names.OPERATIONS,
    summary="Show all actors with their numbers, who sends to whom, and the tools; for operators",
    details="See [numbers](#numbers)",
    in_console=True,
    rights="operators",
    answers={200: Named("asya.capabilities.operations.mesh_numbers.MeshNumbers")},
    query={"actor": {"type": "string", "description": "only these actors, separated by commas"}},
)
ACTOR = ApiCall(
    method="GET",
    path="/api/v1/operations/actors/{actor}",
    handler="asya.gateway.operations.numbers.NumberRoutes.actor",
    function=names.OPERATIONS,
    summary="Show an actor with its settings, its durations and its recent errors; for operators",
    in_console=True,
    rights="operators",
    answers={200: Named("asya.capabilities.operations.mesh_numbers.ActorDetails")},
    errors=(404,),
)
DEAD_LETTERS = ApiCall(
    method="GET",
    path="/api/v1/operations/dead-letters",
    handler="asya.gateway.operations.dead_letters.DeadLetterRoutes.all",
    function=names.OPERATIONS,
    summary="Show dead letters with their bodies; all of them stay in their queues; for operators",
    details="See [dead letters](#dead-letters)",
    in_console=True,
    rights="operators",
    answers={200: Named("asya.capabilities.operations.dead_letters.LetterPage")},
    errors=(400, 404),
    query={
        "actor": {"type": "string", "description": "the actor behind the dead-letter queue"},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": Named("asya.capabilities.operations.dead_letters.LARGEST_LIMIT"),
            "default": Named("asya.capabilities.operations.dead_letters.DEFAULT_LIMIT"),
        },
    },
)
RUNS = ApiCall(
    method="GET",
    path="/api/v1/operations/runs",
    handler="asya.gateway.operations.runs.RunRoutes.all",
    function=names.OPERATIONS,
    summary="List job runs: the open ones first, then the others, newest first; for operators",
    details="See [job runs](#job-runs)",
    in_console=True,
    rights="operators",
    answers={200: Named("asya.gateway.operations.runs.RunPage")},
    errors=(400, 404),
    query={"actor": {"type": "string"}, "limit": LIMIT, "cursor": CURSOR},
)
RUN = ApiCall(
    method="GET",
    path="/api/v1/operations/runs/{run_id}",
    handler="asya.gateway.operations.runs.RunRoutes.run",
    function=names.OPERATIONS,
    summary="Read a job run with its envelopes, its verdict and its cost; for operators",
    in_console=True,
    rights="operators",
    answers={200: Named("asya.gateway.operations.runs.RunDetails")},
    errors=(400, 404),
    query={
        "limit": LIMIT
        | {
            "maximum": Named("asya.gateway.operations.runs.MOST_MEMBERS"),
            "default": Named("asya.gateway.operations.runs.MOST_MEMBERS"),
        },
        "cursor": CURSOR,
    },
)

CALLS = (
    TASK_LINES,
    ACTOR_LINES,
    RUN_LINES,
    NUMBERS,
    ACTOR,
    DEAD_LETTERS,
    RUNS,
    RUN,
)
