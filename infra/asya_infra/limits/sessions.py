"""Checks the session policies of job runs, which the dispatcher makes at run time."""

from collections.abc import Iterator

from asya.heavy.run_request import JobDeployment, RunRequestError, run_request
from asya.protocol import names
from asya.protocol.job_runs import Manifest, run_id
from asya_infra.addresses import Addresses
from asya_infra.mesh import Mesh
from asya_infra.permissions.groups import heavy_actors

_ACCOUNT, _REGION = "1" * 12, "r" * names.REGION_LIMIT
_HASH = "0" * 64
_LATEST_RUN = 10**10 - 1


def check_sessions(mesh: Mesh) -> Iterator[str]:
    """Yield a message for each heavy actor whose runs StartJobRun would refuse in any account and region."""
    addresses = Addresses(
        namespace=mesh.namespace,
        partition="aws-us-gov",
        region=_REGION,
        account=_ACCOUNT,
        url_suffix="amazonaws.com",
        data_bucket=mesh.file.storage.data_bucket,
        results_bucket=mesh.file.storage.results_bucket,
    )
    code = f"s3://cdk-{mesh.file.bootstrap_qualifier}-assets-{_ACCOUNT}-{_REGION}/{mesh.asset_prefix}{_HASH}"
    deployment = JobDeployment(
        bucket=addresses.bucket,
        data_uri=addresses.data.uri,
        results_uri=addresses.results.uri,
        entry_point=f"{code}.py",
        py_files=(f"{code}.zip",),
        jobs=f"{code}.tgz",
        region=_REGION,
        role_prefix=addresses.role_arn_prefix,
        access_policy_prefix=addresses.access_policy_prefix,
        packages=f"{code}.tgz" if mesh.jobs_need_packages else None,
        release=mesh.table.spark.release,
    )
    for actor in heavy_actors(mesh.table):
        job = mesh.table.actors[actor].spark
        assert job is not None
        manifest = Manifest(
            run_id=run_id(mesh.namespace, actor, _LATEST_RUN),
            namespace=mesh.namespace,
            actor=actor,
            number=_LATEST_RUN,
            formed_at="",
            job=job.job,
            shape=job.shape,
            timeout=1,
            time_limit=1,
            client_token="",
            members=(),
        )
        try:
            run_request(manifest, job, deployment, mesh.table.actors[actor].secrets)
        except RunRequestError as error:
            yield f"actors.{actor}: {error}"
