"""What starting, running and finishing jobs takes."""

from collections.abc import Iterable

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions import common
from asya_infra.permissions.access import folder_grants
from asya_infra.permissions.actors import targets_of
from asya_infra.permissions.grant import Grant

JOB = "x-job"
_SERVICE = "emr-serverless.amazonaws.com"
_WHY_RUNS = "Job runs of this mesh's application; the service names them."


def heavy_actors(table: MeshTable) -> list[str]:
    """The heavy actors by name."""
    return sorted(name for name, actor in table.actors.items() if actor.kind == "spark")


def dispatch(addresses: Addresses, application_id: str, api_id: str) -> list[Grant]:
    """Forms job runs from what is pending and starts them."""
    application = addresses.application_arn(application_id)
    on_runs = ("CancelJobRun", "GetDashboardForJobRun", "GetJobRun", "TagResource")
    as_service = {"StringEquals": {"iam:PassedToService": _SERVICE}}
    return [
        common.logs(addresses, names.DISPATCH),
        common.consume(addresses, names.DISPATCH),
        common.send(addresses, common.ends(names.DISPATCH, names.COMPLETION)),
        common.report(addresses, api_id),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ_WRITE, "runs", "payloads"),
        common.objects(addresses, common.READ, "pending", "inbox"),
        common.tell_missing(addresses),
        Grant(("emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"), (application,)),
        Grant(tuple(f"emr-serverless:{action}" for action in on_runs), (f"{application}/jobruns/*",), why=_WHY_RUNS),
        Grant(("iam:PassRole",), (addresses.role_arn(JOB),), conditions=as_service),
    ]


def complete(addresses: Addresses, table: MeshTable, application_id: str, api_id: str) -> list[Grant]:
    """Takes one commit of a run that ended and routes its frames, for whichever heavy actor it was."""
    targets = {target for actor in heavy_actors(table) for target in targets_of(table, actor)}
    runs = f"{addresses.application_arn(application_id)}/jobruns/*"
    return [
        common.logs(addresses, names.COMPLETION),
        common.consume(addresses, names.COMPLETION),
        common.send(addresses, common.ends(names.COMPLETION, names.DISPATCH, *targets)),
        common.report(addresses, api_id),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ_WRITE, "runs", "payloads", "frames"),
        common.objects(addresses, common.READ, "pending", "inbox"),
        common.tell_missing(addresses),
        Grant(("emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"), (runs,), why=_WHY_RUNS),
    ]


def reconcile(addresses: Addresses, application_id: str) -> list[Grant]:
    """Finds what was lost on the way and asks the dispatcher or the completion to see to it."""
    runs = f"{addresses.application_arn(application_id)}/jobruns/*"
    return [
        common.logs(addresses, names.RECONCILE),
        common.send(addresses, {names.DISPATCH, names.COMPLETION}),
        common.table(addresses, "pending"),
        common.objects(addresses, common.READ, "runs", "pending"),
        common.tell_missing(addresses),
        Grant(("emr-serverless:ListJobRuns",), (addresses.application_arn(application_id),)),
        Grant(("emr-serverless:GetJobRun",), (runs,), why=_WHY_RUNS),
    ]


def scratch(addresses: Addresses, actor: str) -> list[Grant]:
    """An actor's own room beside the data."""
    return folder_grants(addresses.data, [f"scratch/{actor}/*"], [f"scratch/{actor}/*"], addresses)


def job(addresses: Addresses, access: Iterable[Grant], code_bucket: str, code_keys: Iterable[str]) -> list[Grant]:
    """What the job runs of all heavy actors need together; each run's session gets only its own part of it."""
    why = "Manifest, journal and results of a run lie under the run's own number."
    run_objects = addresses.objects_arn(addresses.bucket, "runs/*")
    code = tuple(addresses.objects_arn(code_bucket, key) for key in code_keys)
    return [
        Grant(("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"), (run_objects,), why=why),
        common.objects(addresses, common.READ, "pending", "payloads", "inbox"),
        common.tell_missing(addresses),
        Grant(("s3:GetObject",), code),
        *access,
    ]


def named_files(addresses: Addresses, uris: Iterable[str]) -> list[Grant]:
    """Archives and Python files that the mesh file names by their `s3://` addresses (a `#folder` is no part of one)."""
    places = sorted({uri.removeprefix("s3://").partition("#")[0] for uri in uris})
    objects = [addresses.objects_arn(*place.split("/", 1)) for place in places if "/" in place]
    why = "The mesh file names these files."
    return [Grant(("s3:GetObject",), tuple(objects), why=why)] if objects else []
