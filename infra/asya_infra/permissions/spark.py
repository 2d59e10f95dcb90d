"""Permissions to start, run and complete job runs."""

from collections.abc import Iterable

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.access import folder_grants
from asya_infra.permissions.actors import send_targets
from asya_infra.permissions.grant import Grant

JOB = "x-job"
_SERVICE = "emr-serverless.amazonaws.com"
_RUNS_REASON = "Job runs of this mesh's application; the service names them."


def heavy_actors(table: MeshTable) -> list[str]:
    """Return the names of the heavy actors, sorted."""
    return sorted(name for name, actor in table.actors.items() if actor.kind == "spark")


def dispatch(addresses: Addresses, application_id: str, api_id: str) -> list[Grant]:
    """x-dispatch: forms job runs from pending envelopes and starts them."""
    application = addresses.application_arn(application_id)
    run_actions = ("CancelJobRun", "GetDashboardForJobRun", "GetJobRun", "TagResource")
    only_to_emr = {"StringEquals": {"iam:PassedToService": _SERVICE}}
    return [
        common.write_logs(addresses, names.DISPATCH),
        common.consume_queue(addresses, names.DISPATCH),
        common.send_messages(addresses, common.with_end_actors(names.DISPATCH, names.COMPLETION)),
        common.send_reports(addresses, api_id),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ_WRITE, "runs", "payloads"),
        common.objects(addresses, common.READ, "pending", "inbox"),
        common.list_bucket(addresses),
        Grant(("emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"), (application,)),
        Grant(
            tuple(f"emr-serverless:{action}" for action in run_actions),
            (f"{application}/jobruns/*",),
            reason=_RUNS_REASON,
        ),
        Grant(("iam:PassRole",), (addresses.role_arn(JOB),), conditions=only_to_emr),
    ]


def complete(addresses: Addresses, table: MeshTable, application_id: str, api_id: str) -> list[Grant]:
    """x-completion: reads the commit of an ended run and routes its frames, for every heavy actor."""
    targets = {target for actor in heavy_actors(table) for target in send_targets(table, actor)}
    runs = f"{addresses.application_arn(application_id)}/jobruns/*"
    return [
        common.write_logs(addresses, names.COMPLETION),
        common.consume_queue(addresses, names.COMPLETION),
        common.send_messages(addresses, common.with_end_actors(names.COMPLETION, names.DISPATCH, *targets)),
        common.send_reports(addresses, api_id),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ_WRITE, "runs", "payloads", "frames"),
        common.objects(addresses, common.READ, "pending", "inbox"),
        common.list_bucket(addresses),
        Grant(("emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"), (runs,), reason=_RUNS_REASON),
    ]


def reconcile(addresses: Addresses, application_id: str) -> list[Grant]:
    """x-reconcile: finds lost envelopes and runs, and sends them to the dispatcher or the completion."""
    runs = f"{addresses.application_arn(application_id)}/jobruns/*"
    return [
        common.write_logs(addresses, names.RECONCILE),
        common.send_messages(addresses, {names.DISPATCH, names.COMPLETION}),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ, "runs", "pending"),
        common.list_bucket(addresses),
        Grant(("emr-serverless:ListJobRuns",), (addresses.application_arn(application_id),)),
        Grant(("emr-serverless:GetJobRun",), (runs,), reason=_RUNS_REASON),
    ]


def scratch(addresses: Addresses, actor: str) -> list[Grant]:
    """Allow a heavy actor its own scratch folder in the data of the mesh."""
    return folder_grants(addresses.data, [f"scratch/{actor}/*"], [f"scratch/{actor}/*"], addresses)


def job(addresses: Addresses, access: Iterable[Grant], code_bucket: str, code_keys: Iterable[str]) -> list[Grant]:
    """The job role: the permissions of all heavy actors. A session policy narrows each run to its own part."""
    reason = "The keys of a run contain its number, which exists only at run time."
    run_objects = addresses.objects_arn(addresses.bucket, "runs/*")
    code = tuple(addresses.objects_arn(code_bucket, key) for key in code_keys)
    return [
        Grant(
            ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"),
            (run_objects,),
            reason=reason,
        ),
        common.objects(addresses, common.READ, "pending", "payloads", "inbox"),
        common.list_bucket(addresses),
        Grant(("s3:GetObject",), code),
        *access,
    ]


def referenced_files(addresses: Addresses, uris: Iterable[str]) -> list[Grant]:
    """Allow reading the archives and Python files that the mesh file lists as `s3://bucket/key`, or `…#folder`."""
    paths = sorted({uri.removeprefix("s3://").partition("#")[0] for uri in uris})
    objects = [addresses.objects_arn(*path.split("/", 1)) for path in paths if "/" in path]
    reason = "The mesh file lists these files."
    return [Grant(("s3:GetObject",), tuple(objects), reason=reason)] if objects else []
