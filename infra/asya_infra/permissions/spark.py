"""Permissions of job runs for their own files. StartJobRun narrows them, so they are no needs of a function."""

from collections.abc import Iterable

from asya.protocol.job_runs import (
    ATTEMPTS_FOLDER,
    BATCHES_FOLDER,
    LOGS_FOLDER,
    RUNS_PREFIX,
    SCRATCH_PREFIX,
    pending_prefix,
)
from asya_infra.addresses import Addresses
from asya_infra.permissions.access import folder_grants
from asya_infra.permissions.grant import Grant


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
    listed = {"StringLike": {"s3:prefix": [f"{RUNS_PREFIX}{actor}/*", f"{pending_prefix(actor)}*"]}}
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
        Grant(("s3:ListBucket",), (addresses.bucket_arn(addresses.bucket),), conditions=listed),
    ]


def referenced_files(addresses: Addresses, uris: Iterable[str]) -> list[Grant]:
    """Allow reading the archives and Python files that the mesh file lists as `s3://bucket/key`, or `…#folder`."""
    paths = sorted({uri.removeprefix("s3://").partition("#")[0] for uri in uris})
    objects = [addresses.objects_arn(*path.split("/", 1)) for path in paths if "/" in path]
    reason = "The mesh file lists these files."
    return [Grant(("s3:GetObject",), tuple(objects), reason=reason)] if objects else []
