"""Declared series as metrics of CloudWatch, with the dimensions that they have in a mesh."""

from asya import registry
from asya.manifest import Requests, Schedule, TableChanges
from asya.monitoring import AWS_METRICS, SQS, Metric, Of, Series
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.constructs.observability.alarms import MetricSource
from asya_infra.mesh import Mesh

# CloudWatch replaces this text in the page of an actor by the picked actor.
PLACEHOLDER = "PICKED-ACTOR"


def own_metric(mesh: Mesh, name: str) -> Metric | None:
    """Return the metric that functions write; None for a metric of an AWS service.

    Raises:
        ValueError: Nobody declares the metric.
    """
    if name in AWS_METRICS:
        return None
    metrics = registry.of(mesh.table).metrics
    if name not in metrics:
        raise ValueError(f"no capability declares the metric {name!r}; add it to METRICS of a manifest")
    return metrics[name]


def source(mesh: Mesh, series: Series, of: str | Of) -> MetricSource:
    """Return one series: of the mesh or the account, or of one actor with its queue and its function."""
    namespace = mesh.namespace
    metric = own_metric(mesh, series.metric)
    service = names.METRICS_NAMESPACE if metric is not None else AWS_METRICS[series.metric]
    dimensions: dict[str, str] = {}
    actor = actor_of(of)
    if metric is not None:
        dimensions = {"namespace": namespace} | ({"actor": actor} if actor else {})
        if metric.split is not None and actor:
            (value,) = series.values
            dimensions[metric.split] = value
    elif actor and service == SQS:
        dimensions = {"QueueName": names.queue_name(namespace, actor)}
    elif actor:
        # A longer name of a function ends with a hash; the graphs of the picked one are empty then.
        is_picked = actor == PLACEHOLDER
        name = f"asya-{namespace}-{actor}" if is_picked else names.function_name(namespace, actor)
        dimensions = {"FunctionName": name}
    return MetricSource(namespace=service, metric=series.metric, statistic=series.statistic, dimensions=dimensions)


def actor_of(of: str | Of) -> str | None:
    """Return the one actor that a series is about; None if it is about none or several."""
    if of is Of.PICKED_LETTERS:
        return f"{PLACEHOLDER}-dlq"
    return PLACEHOLDER if of is Of.PICKED else of if isinstance(of, str) else None


def members(mesh: Mesh, of: str | Of) -> list[str]:
    """Return the actors or functions that a series is about, each by itself.

    Raises:
        ValueError: Only a search can tell them.
    """
    match of:
        case Of.QUEUES:
            return queue_actors(mesh.table)
        case Of.FUNCTIONS:
            return functions(mesh)
        case Of.UNQUEUED:
            return unqueued_functions(mesh)
        case Of.SWEEPS:
            return list(registry.sweeps_of(mesh.table))
        case str():
            return [of]
    raise ValueError(f"nothing can list a series of {of.value}; QUEUES, FUNCTIONS, UNQUEUED and SWEEPS have members")


def queue_actors(mesh: MeshTable) -> list[str]:
    """Return the actors and system functions whose queue has messages for them, sorted; the crew comes last.

    The queues of reports are none of them: alarms of their own watch those.
    """
    system = [name for name, (_, queues) in registry.queues_of(mesh).items() if name not in names.REPORT_QUEUES]
    return sorted((*mesh.actors, *system), key=lambda actor: (names.is_reserved(actor), actor))


def functions(mesh: Mesh) -> list[str]:
    """Return the names of all functions, sorted; those of the mesh's own come last."""
    own = [each.name for each in registry.functions_of(mesh.table)]
    all_names = {names.runner_of(each) for each in (*mesh.table.actors, *own)} | {*_live(mesh)}
    return sorted(all_names, key=lambda name: (names.is_reserved(name), name))


def _live(mesh: Mesh) -> list[str]:
    return [names.GATEWAY_LIVE] if mesh.file.gateway.streaming == "adapter" else []


def unqueued_functions(mesh: Mesh) -> list[str]:
    """Return the functions without a queue: a message does not come again after their errors.

    x-roles is none of them: its failure fails the deployment that called it. Nor are functions that only read: an operator sees
    their failure.
    """
    callers = [(each.name, each.called_by) for each in registry.functions_of(mesh.table)]
    calls = [name for name, caller in callers if isinstance(caller, Requests) and caller.changes]
    changes = [name for name, caller in callers if isinstance(caller, TableChanges)]
    scheduled = [name for name, caller in callers if isinstance(caller, Schedule)]
    return [*calls, *_live(mesh), *changes, *scheduled]
