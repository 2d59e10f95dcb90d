"""The permissions of a heavy actor's job runs, from its section of the mesh file.

StartJobRun narrows them, so they are no needs of a function.
"""

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
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.table import section_of
from asya_infra.permissions.access import access_grants, catalog_grants, folder_grants, list_uploads, tenant_grants
from asya_infra.permissions.encryption import use_key, use_keys_of_buckets
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import secret_grants


def run_access(mesh: MeshFile, addresses: Addresses, actor: str, code: str, key: str | None = None) -> list[Grant]:
    """Return what the job runs of an actor may do beside their own files: catalog, `access`, `secrets`, the keys.

    The access policy belongs to the role and to the session of each run, so these take nothing of the session policy, and hold
    for each run of the actor alike. The keys are those of all objects that a run reaches, its code included.

    Args:
        mesh: the mesh file.
        addresses: the addresses of the mesh.
        actor: the name of the heavy actor.
        code: a pattern for the objects with the code of job runs.
        key: the ARN of the customer managed key; None without one.
    """
    section = section_of(mesh, actor)
    access = access_grants(section.access, addresses, by_s3a=True)
    secrets = secret_grants(section.secrets.values(), addresses)
    has_catalog = section.spark is not None and section.spark.catalog == "glue"
    catalog = catalog_grants(addresses) if has_catalog else []
    grants = [list_uploads(addresses.data.bucket, addresses), *catalog, *access, *secrets]
    objects = [*grants, *run_files(mesh, addresses, actor, code)]
    return [*grants, *use_key(key, objects, addresses), *use_keys_of_buckets(objects, addresses)]


def run_files(mesh: MeshFile, addresses: Addresses, actor: str, code: str) -> list[Grant]:
    """Return what the job runs of an actor may do with their own files, code, listed files and the folders of tenants.

    The session policy of each run names its part.

    Args:
        mesh: the mesh file.
        addresses: the addresses of the mesh.
        actor: the name of the heavy actor.
        code: a pattern for the objects with the code of job runs.
    """
    section = section_of(mesh, actor)
    job = section.spark
    listed = _listed_files(addresses, (*job.archives, *job.py_files)) if job is not None else []
    own = _own_files(addresses, actor, code, lingers=job is not None and job.linger > 0)
    return [*own, *scratch(addresses, actor), *listed, *tenant_grants(section.access, addresses)]


def scratch(addresses: Addresses, actor: str) -> list[Grant]:
    """Allow a heavy actor its scratch folder in the data of the mesh. The session policy of a run names the part of the run."""
    return folder_grants(addresses.data, [], [f"{SCRATCH_PREFIX}{actor}/*"], addresses, by_s3a=True)


def _own_files(addresses: Addresses, actor: str, code: str, *, lingers: bool = False) -> list[Grant]:
    """Allow the job runs of an actor their own files, beside its access policy. A session policy narrows each run to its own part.

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


def _listed_files(addresses: Addresses, uris: Iterable[str]) -> list[Grant]:
    """Allow reading the archives and Python files that the mesh file lists as `s3://bucket/key`, or `…#folder`."""
    paths = sorted({uri.removeprefix("s3://").partition("#")[0] for uri in uris})
    objects = [addresses.objects_arn(*path.split("/", 1)) for path in paths if "/" in path]
    reason = "The mesh file lists these files."
    return [Grant(("s3:GetObject",), tuple(objects), reason=reason)] if objects else []
