"""Permissions to start, run and complete job runs."""

from collections.abc import Iterable

from asya.protocol import names
from asya.protocol.job_runs import (
    ATTEMPTS_FOLDER,
    BATCHES_FOLDER,
    LOGS_FOLDER,
    RUNS_PREFIX,
    SCRATCH_PREFIX,
    pending_prefix,
)
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.access import folder_grants
from asya_infra.permissions.actors import send_targets
from asya_infra.permissions.grant import Grant

_SERVICE = "emr-serverless.amazonaws.com"
_RUNS_REASON = "Job runs of this mesh's application; the service names them."


def heavy_actors(table: MeshTable) -> list[str]:
    """Return the names of the heavy actors, sorted."""
    return sorted(name for name, actor in table.actors.items() if actor.kind == "spark")


def dispatch(addresses: Addresses, table: MeshTable, application_id: str) -> list[Grant]:
    """x-dispatch: forms job runs from pending envelopes and starts them."""
    application = addresses.application_arn(application_id)
    run_actions = ("GetJobRun", "TagResource")
    only_to_emr = {"StringEquals": {"iam:PassedToService": _SERVICE}}
    return [
        common.write_logs(addresses, names.DISPATCH),
        common.consume_queue(addresses, names.DISPATCH),
        *common.count_starts(addresses, names.DISPATCH),
        common.read_roles(addresses),
        common.send_messages(addresses, common.with_end_actors(names.DISPATCH, names.COMPLETION)),
        common.send_reports(addresses),
        common.read_states(addresses),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ_WRITE, "runs"),
        common.objects(addresses, common.READ, "pending"),
        common.write_payloads(addresses, common.with_end_actors()),
        common.list_keys(addresses, "runs", "pending"),
        Grant(("emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"), (application,)),
        Grant(
            tuple(f"emr-serverless:{action}" for action in run_actions),
            (f"{application}/jobruns/*",),
            reason=_RUNS_REASON,
        ),
        Grant(("iam:PassRole",), tuple(map(addresses.job_role_arn, heavy_actors(table))), conditions=only_to_emr),
    ]


def complete(addresses: Addresses, table: MeshTable, application_id: str) -> list[Grant]:
    """x-completion: reads the commit of an ended run and routes its frames, for every heavy actor."""
    targets = {target for actor in heavy_actors(table) for target in send_targets(table, actor)}
    runs = f"{addresses.application_arn(application_id)}/jobruns/*"
    return [
        common.write_logs(addresses, names.COMPLETION),
        common.consume_queue(addresses, names.COMPLETION),
        *common.count_starts(addresses, names.COMPLETION),
        common.read_roles(addresses),
        common.send_messages(addresses, common.with_end_actors(names.COMPLETION, names.DISPATCH, *targets)),
        common.send_reports(addresses),
        common.read_states(addresses),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ, "runs", "pending"),
        common.write_payloads(addresses),
        common.list_keys(addresses, "runs", "pending"),
        Grant(("emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"), (runs,), reason=_RUNS_REASON),
        *_close_batches(addresses, table),
    ]


def lingering_actors(table: MeshTable) -> list[str]:
    """Return the names of the heavy actors whose runs linger, sorted."""
    return sorted(name for name, actor in table.actors.items() if actor.spark is not None and actor.spark.linger)


def _close_batches(addresses: Addresses, table: MeshTable) -> list[Grant]:
    """Allow marking that a resident run gets no further batch, before its job run is canceled."""
    actors = lingering_actors(table)
    patterns = [
        addresses.objects_arn(addresses.bucket, f"{RUNS_PREFIX}{actor}/*/{BATCHES_FOLDER}/*") for actor in actors
    ]
    reason = "The keys of a run contain its number, which exists only at run time."
    return [Grant(("s3:PutObject",), tuple(patterns), reason=reason)] if patterns else []


def reconcile(addresses: Addresses, application_id: str) -> list[Grant]:
    """x-reconcile: finds lost envelopes and runs, and sends them to the dispatcher or the completion."""
    runs = f"{addresses.application_arn(application_id)}/jobruns/*"
    return [
        common.write_logs(addresses, names.RECONCILE),
        common.send_messages(addresses, {names.DISPATCH, names.COMPLETION}),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ, "runs"),
        common.list_keys(addresses, "runs"),
        Grant(("emr-serverless:GetJobRun",), (runs,), reason=_RUNS_REASON),
    ]


def scratch(addresses: Addresses, actor: str) -> list[Grant]:
    """Allow a heavy actor its own scratch folder in the data of the mesh."""
    return folder_grants(addresses.data, [], [f"{SCRATCH_PREFIX}{actor}/*"], addresses, by_s3a=True)


def job(addresses: Addresses, actor: str, code: str, *, lingers: bool = False) -> list[Grant]:
    """The job runs of an actor, beside its access policy. A session policy narrows each run to its own part.

    Args:
        code: a pattern for the objects with the code of this and of earlier deployments: a run that a deployment
            overtakes loads its code still.
        lingers: whether runs of the actor linger.
    """
    runs = addresses.objects_arn(addresses.bucket, f"{RUNS_PREFIX}{actor}/*")
    written = [
        f"{RUNS_PREFIX}{actor}/*/{folder}*"
        for folder in (ATTEMPTS_FOLDER, LOGS_FOLDER, *([BATCHES_FOLDER] if lingers else []))
    ]
    pending = addresses.objects_arn(addresses.bucket, f"{pending_prefix(actor)}*")
    reason = "The keys of a run contain its number, which exists only at run time."
    return [
        Grant(("s3:GetObject",), (runs,), reason=reason),
        # Never the manifest, by which the completion routes the results. EMR Serverless writes logs with this role.
        Grant(
            ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject"),
            tuple(addresses.objects_arn(addresses.bucket, pattern) for pattern in written),
            reason=reason,
        ),
        Grant(("s3:GetObject",), (pending,), reason="The keys of pending envelopes contain their ids."),
        Grant(("s3:GetObject",), (code,), reason="The code of each deployment has keys of its own."),
        common.list_keys(addresses, f"{RUNS_PREFIX}{actor}", pending_prefix(actor).rstrip("/")),
    ]


def referenced_files(addresses: Addresses, uris: Iterable[str]) -> list[Grant]:
    """Allow reading the archives and Python files that the mesh file lists as `s3://bucket/key`, or `…#folder`."""
    paths = sorted({uri.removeprefix("s3://").partition("#")[0] for uri in uris})
    objects = [addresses.objects_arn(*path.split("/", 1)) for path in paths if "/" in path]
    reason = "The mesh file lists these files."
    return [Grant(("s3:GetObject",), tuple(objects), reason=reason)] if objects else []
