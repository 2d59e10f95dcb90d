"""The Lambda entry points of heavy actors, the dispatcher, the completion and the reconciler."""

from collections.abc import Callable

from asya.heavy.lambdas.complete import Completion
from asya.heavy.lambdas.dispatch import Dispatcher
from asya.heavy.lambdas.enqueue import Enqueuer
from asya.heavy.lambdas.reconcile import Reconciler
from asya.heavy.lambdas.services import SparkServices
from asya.sidecar.lambdas.entry_point import (
    LambdaContext,
    queue_entry_point,
    schedule_entry_point,
    timed_queue_entry_point,
)
from asya.sidecar.lambdas.services import Services


def build_enqueue(services: Services) -> Enqueuer:
    """The sidecar of a heavy actor."""
    return Enqueuer(SparkServices(services))


def build_dispatch(services: Services) -> Dispatcher:
    """The dispatcher."""
    return Dispatcher(SparkServices(services))


def build_completion(services: Services) -> Callable[[LambdaContext], Completion]:
    """The completion of each invocation."""
    spark = SparkServices(services)
    return lambda context: Completion(spark, context)


def build_reconcile(services: Services) -> Reconciler:
    """The reconciler."""
    return Reconciler(SparkServices(services))


enqueue = queue_entry_point(build_enqueue)
dispatch = queue_entry_point(build_dispatch)
complete = timed_queue_entry_point(build_completion)
reconcile = schedule_entry_point(build_reconcile)
