"""Uploads the code of jobs, and names it for the dispatcher."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from asya.function.aws.settings import SparkSettings
from asya_infra.build.jobs import build_jobs
from asya_infra.build.packages import Target
from asya_infra.product.places import BUILD
from asya_local.account.clients import aws_client
from asya_local.code_updates import zipped
from asya_local.dev.deployment import CODE_BUCKET
from asya_local.emr.drivers.job_environment import job_python
from asya_local.emr.settings import ApplicationSettings

if TYPE_CHECKING:
    from asya_local.account.keys import AccessKey
    from asya_local.dev.deployment import Deployment


def upload_jobs(mesh: Deployment, endpoint: str, root: AccessKey) -> SparkSettings:
    """Upload the code of the jobs as it is now. Its keys follow from its content, so a run keeps the code of its start.

    Raises:
        PackagesError: A required package cannot be installed.
    """
    actors = [mesh.table.actors[name] for name in mesh.heavy_actors]
    files = build_jobs(
        BUILD,
        Target(interpreter=job_python(BUILD)),
        mesh.loaded.jobs_folder,
        hashed=mesh.loaded.mesh.requires_hashes,
        aws_client=any(actor.secrets or (actor.spark is not None and actor.spark.linger) for actor in actors),
    )
    s3 = aws_client("s3", endpoint, root)

    def upload(content: bytes, suffix: str) -> str:
        key = f"{mesh.loaded.namespace}/{sha256(content).hexdigest()}{suffix}"
        s3.put_object(Bucket=CODE_BUCKET, Key=key, Body=content)
        return f"s3://{CODE_BUCKET}/{key}"

    def upload_file(path: Path) -> str:
        return upload(path.read_bytes(), "".join(path.suffixes))

    packages = files.packages
    return SparkSettings(
        application_id=ApplicationSettings.application_id,
        role_prefix=mesh.addresses.role_arn_prefix,
        entry_point=upload_file(files.entry_point),
        py_files=(upload(zipped(files.library), ".zip"),),
        jobs=upload_file(files.jobs.archive),
        access_policy_prefix=mesh.addresses.access_policy_prefix,
        packages=None if packages is None else upload_file(packages.archive),
    )
