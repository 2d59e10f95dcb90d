"""The Lambda entry points of heavy actors, the dispatcher, the completion and the reconciler."""

from collections.abc import Mapping
from typing import Any

from asya.messaging.lambdas.batch import BatchResponse
from asya.sidecar.lambdas.entry_point import queue_entry_point, schedule_entry_point
from asya.sidecar.lambdas.services import Services
from asya.spark.lambdas.complete import Completion, LambdaContext
from asya.spark.lambdas.dispatch import Dispatcher
from asya.spark.lambdas.enqueue import Enqueuer
from asya.spark.lambdas.reconcile import Reconciler
from asya.spark.lambdas.services import SparkServices, spark_services


def build_enqueue(services: Services) -> Enqueuer:
    """The sidecar of a heavy actor."""
    return Enqueuer(SparkServices(services))


def build_dispatch(services: Services) -> Dispatcher:
    """The dispatcher."""
    return Dispatcher(SparkServices(services))


def build_reconcile(services: Services) -> Reconciler:
    """The reconciler."""
    return Reconciler(SparkServices(services))


enqueue = queue_entry_point(build_enqueue)
dispatch = queue_entry_point(build_dispatch)
reconcile = schedule_entry_point(build_reconcile)


def complete(event: Mapping[str, Any], context: LambdaContext) -> BatchResponse:
    """The completion: processes one batch of its queue."""
    return Completion(spark_services(), context).process(event)
