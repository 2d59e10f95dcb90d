"""Declares the functions of heavy actors and their job runs."""

from asya.manifest import ActorFunction, Function, Queues, Schedule, with_jobs
from asya.protocol import names

_TIMEOUT = 120

FUNCTIONS = (
    ActorFunction(
        kind="spark",
        entry_point="asya.spark.lambdas.wiring.enqueue",
        timeout=_TIMEOUT,
        # Large batches save calls of DynamoDB. The wait for a batch is short compared with a job run.
        queues=Queues(batch=100, window=1),
    ),
    Function(
        name=names.DISPATCH,
        entry_point="asya.spark.lambdas.wiring.dispatch",
        # The runs of one actor are formed one after another. Concurrency lets several actors dispatch independently.
        called_by=Queues(concurrency=5),
        timeout=_TIMEOUT,
        exists=with_jobs,
    ),
    Function(
        name=names.COMPLETION,
        entry_point="asya.spark.lambdas.wiring.complete",
        # A run may have thousands of envelopes, so an invocation takes one event. Routing the results of a large run
        # takes minutes; the concurrency leaves invocations for the frequent, short checks of other runs.
        called_by=Queues(batch=1, concurrency=30),
        timeout=300,
        memory=1024,
        exists=with_jobs,
    ),
    Function(
        name=names.RECONCILE,
        entry_point="asya.spark.lambdas.wiring.reconcile",
        called_by=Schedule(
            minutes=5, rule="reconcile", checks="lost job runs", without="lost job runs are not repaired"
        ),
        timeout=_TIMEOUT,
        exists=with_jobs,
    ),
)
