"""Builds the StartJobRun request of a run: arguments, Spark parameters and session policy (`protocol §10`)."""

import hashlib
import json
import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os.path import commonprefix
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from asya.heavy.job_python import CODE_FOLDER, PACKAGES_FOLDER, is_users, path_conf, python_conf
from asya.heavy.tenant_access import TENANT, TenantKeys, folder_name, is_of_tenant, tenant_keys
from asya.protocol import names
from asya.protocol.job_runs import (
    ATTEMPTS_FOLDER,
    BATCHES_FOLDER,
    LOGS_FOLDER,
    Manifest,
    logs_prefix,
    manifest_key,
    pending_prefix,
    run_prefix,
    scratch_prefix,
)
from asya.protocol.keys import S3Prefix
from asya.protocol.mesh_table import Access, SparkJob

POLICY_LIMIT = 2048  # characters of the session policy and of the ARNs of managed policies, together
PARAMETERS_LIMIT = 102_400  # characters of sparkSubmitParameters

# A policy names a stored envelope by the first 64 bits of its digest. About ten such names fit into a policy.
_DIGEST_CHARACTERS = 16
_INITIAL_EXECUTORS = "spark.dynamicAllocation.initialExecutors"
_MOST_STORED = 20

DATA_URI_VARIABLE = "ASYA_DATA_URI"
RESULTS_URI_VARIABLE = "ASYA_RESULTS_URI"


class RunRequestError(ValueError):
    """A job's settings exceed a limit of StartJobRun; the message names the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDeployment:
    """The deployed resources that all jobs of a mesh share.

    Attributes:
        bucket: the mesh's bucket.
        data_uri: the base of references; ends with `/`.
        results_uri: the folder of x-sink; ends with `/`.
        entry_point, py_files: `s3://` URIs of the start script and of the job library.
        jobs: the `s3://` URI of the archive with the user's jobs; None without any.
        packages: the `s3://` URI of the archive with the Python packages of jobs; None without packages.
        region: the region of the mesh, which the names of roles contain.
        role_prefix: the ARN of a role without the role's name.
        access_policy_prefix: the ARN of an actor's access policy without the policy's name.
        release: the release of the mesh's own application; None for an existing one.
        managed_logs: whether EMR Serverless keeps a copy of the logs in its own storage, under a key of AWS.
    """

    bucket: str
    data_uri: str
    results_uri: str
    entry_point: str
    py_files: tuple[str, ...]
    region: str
    role_prefix: str
    access_policy_prefix: str
    jobs: str | None = None
    packages: str | None = None
    release: str | None = None
    managed_logs: bool = True

    @property
    def partition(self) -> str:
        """The AWS partition: `aws`, `aws-cn` or `aws-us-gov`."""
        return self.role_prefix.split(":")[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The parameters of StartJobRun; the same manifest and deployment give the same request."""

    name: str
    client_token: str
    role_arn: str
    entry_point: str
    arguments: tuple[str, ...]
    submit_parameters: str
    session_policy: str
    policy_arns: tuple[str, ...]
    time_limit: int
    log_uri: str
    tags: Mapping[str, str]
    managed_logs: bool = True


def run_request(
    manifest: Manifest,
    job: SparkJob,
    deployment: JobDeployment,
    secrets: Mapping[str, str] | None = None,
    access: Sequence[Access] = (),
) -> RunRequest:
    """Builds the request of a run.

    Args:
        secrets: the names of the actor's secrets by variable; the job reads their values.
        access: the `access` of the actor.

    Raises:
        UnstartableError: if a limit of the API is exceeded.
    """
    manifest_uri = f"s3://{deployment.bucket}/{manifest_key(manifest.actor, manifest.number)}"
    role_name = names.role_name(manifest.namespace, names.job_role(manifest.actor), deployment.region)
    return RunRequest(
        name=manifest.run_id,
        client_token=manifest.client_token,
        role_arn=deployment.role_prefix + role_name,
        entry_point=deployment.entry_point,
        # All readers of the job run see its arguments, so they carry no payload, and the names of secrets only.
        arguments=(
            "--manifest",
            manifest_uri,
            "--data-uri",
            deployment.data_uri,
            *_options(manifest, job, secrets, deployment),
        ),
        submit_parameters=submit_parameters(job, deployment, aws_client=bool(secrets) or job.linger > 0),
        session_policy=session_policy(manifest, job, deployment, access),
        policy_arns=_policy_arns(manifest, deployment),
        time_limit=_time_limit(manifest, job),
        log_uri=f"s3://{deployment.bucket}/{logs_prefix(manifest.actor, manifest.number)}",
        tags={"asya:namespace": manifest.namespace, "asya:actor": manifest.actor, "asya:run": manifest.run_id},
        managed_logs=deployment.managed_logs,
    )


def _options(
    manifest: Manifest, job: SparkJob, secrets: Mapping[str, str] | None, deployment: JobDeployment
) -> Iterator[str]:
    for variable, name in (secrets or {}).items():
        yield from ("--secret", f"{variable}={name}")
    if manifest.linger:
        yield from ("--linger", f"{manifest.linger:g}", "--limit", f"{_time_limit(manifest, job)}")
    if secrets or manifest.linger:
        yield from ("--region", deployment.region)


def _time_limit(manifest: Manifest, job: SparkJob) -> int:
    """The minutes after which EMR Serverless ends the job run: those of the run, or `max_run` of a resident one."""
    return math.ceil(job.max_run / 60) if manifest.linger else manifest.time_limit


def fingerprint(job: SparkJob, deployment: JobDeployment, secrets: Mapping[str, str] | None = None) -> str:
    """Names all that a job run has from its start on: its code and packages, settings, sizes, variables and access.

    A resident run gets a batch only while this has not changed (`protocol §10.resident`).
    """
    content = {
        "job": msgspec.to_builtins(replace(job, max_runs=None, priority=0, linger=0.0, max_run=0.0)),
        "parameters": submit_parameters(job, deployment, aws_client=True),
        "entry_point": deployment.entry_point,
        "places": [deployment.data_uri, deployment.results_uri],
        "secrets": dict(secrets or {}),
    }
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:16]


def submit_parameters(job: SparkJob, deployment: JobDeployment, *, aws_client: bool = False) -> str:
    """`sparkSubmitParameters`: sizes, files, environment; the `conf` of the mesh file overrides them.

    Args:
        aws_client: whether the driver itself calls AWS: it reads secrets of its actor, or it lingers.

    Raises:
        UnstartableError: if the parameters are too long.
    """
    words: list[str] = []
    variables = {DATA_URI_VARIABLE: deployment.data_uri, RESULTS_URI_VARIABLE: deployment.results_uri}
    archives, conf = job.archives, run_conf(job, variables, deployment.release)
    unpacked = _unpacked(job, deployment)
    archives = (*(f"{uri}#{folder}" for folder, uri in unpacked.items()), *archives)
    conf = path_conf(conf, [*unpacked], aws_client=aws_client and PACKAGES_FOLDER in unpacked)
    for name, value in conf.items():
        words += ["--conf", f"{name}={value}"]
    py_files = (*deployment.py_files, *job.py_files)
    if py_files:
        words += ["--py-files", ",".join(py_files)]
    if archives:
        words += ["--archives", ",".join(archives)]
    text = shlex.join(words)
    if len(text) > PARAMETERS_LIMIT:
        raise RunRequestError(
            f"the Spark parameters of job {job.job!r} have {len(text)} characters; {PARAMETERS_LIMIT} at most. "
            "Shorten its conf, env, py_files or archives"
        )
    return text


def _unpacked(job: SparkJob, deployment: JobDeployment) -> dict[str, str]:
    """The archives of the mesh that a job imports from, by their folder, in the order of Python's search."""
    archives = {CODE_FOLDER: deployment.jobs, PACKAGES_FOLDER: deployment.packages} if is_users(job) else {}
    return {folder: uri for folder, uri in archives.items() if uri is not None}


def run_conf(job: SparkJob, variables: Mapping[str, str], release: str | None) -> dict[str, str]:
    """Describes a run to Spark, on EMR Serverless and on one machine: sizes, variables, and the `conf` of the mesh file.

    Args:
        variables: variables of the mesh; those of the job win.
        release: as `JobDeployment` has it.
    """
    # Spark begins with the largest number that it finds. Those of EMR Serverless, 3, would exceed the maximum of a small job.
    initial = job.conf.get(_INITIAL_EXECUTORS, str(min(max(job.min_executors, 1), job.max_executors)))
    conf = {
        "spark.driver.cores": str(job.driver.cores),
        "spark.driver.memory": f"{job.driver.memory_mb}m",
        "spark.executor.cores": str(job.executor.cores),
        "spark.executor.memory": f"{job.executor.memory_mb}m",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(job.min_executors),
        "spark.executor.instances": initial,
        _INITIAL_EXECUTORS: initial,
        "spark.dynamicAllocation.maxExecutors": str(job.max_executors),
    }
    if job.parallel > 1:
        conf["spark.scheduler.mode"] = "FAIR"  # without it the stages of the first envelope would go before all others
    if job.driver.disk_gb is not None:
        conf["spark.emr-serverless.driver.disk"] = f"{job.driver.disk_gb}g"
    if job.executor.disk_gb is not None:
        conf["spark.emr-serverless.executor.disk"] = f"{job.executor.disk_gb}g"
    for name, value in (dict(variables) | job.env).items():
        conf[f"spark.emr-serverless.driverEnv.{name}"] = value
        conf[f"spark.executorEnv.{name}"] = value
    return conf | python_conf(job, release) | job.conf


def _policy_arns(manifest: Manifest, deployment: JobDeployment) -> tuple[str, ...]:
    return (deployment.access_policy_prefix + names.access_policy_name(manifest.namespace, manifest.actor),)


def session_policy(manifest: Manifest, job: SparkJob, deployment: JobDeployment, access: Sequence[Access] = ()) -> str:
    """The session policy of one run: its folder, envelopes, code, scratch and tenant, beside its actor's `access`.

    The stored envelopes of the run are named one by one as long as they fit. Those of more, and of a run that lingers and so gets
    envelopes later, are all pending ones of its actor (`protocol §10.job-reads`).

    Raises:
        RunRequestError: if the policy and the ARN of the access policy exceed 2,048 characters together, or the run has no tenant
            whose folders `access` grants.
    """
    code = (
        deployment.entry_point,
        *deployment.py_files,
        *job.py_files,
        *(uri.partition("#")[0] for uri in job.archives),
        *_unpacked(job, deployment).values(),
    )
    # STS counts both.
    arns = sum(map(len, _policy_arns(manifest, deployment)))
    folder, of_tenant = pending_prefix(manifest.actor), _tenant_keys(manifest, deployment, access)
    choices = product(([_object_path(uri) for uri in code], _patterns(code)), (_stored(manifest), [folder]))
    texts = (
        _policy(manifest, deployment, objects, pending, of_tenant)
        for objects, pending in choices
        if pending is not None
    )
    for text in texts:
        if len(text) + arns <= POLICY_LIMIT:
            break
    else:
        raise RunRequestError(
            f"the session policy of job {job.job!r} has {len(text)} characters and the ARN of its access policy {arns}; "
            f"{POLICY_LIMIT} at most together. Put its py_files and archives into one folder"
            + (f", or shorten the patterns with {TENANT} in access" if of_tenant.read or of_tenant.written else "")
        )
    return text


def _tenant_keys(manifest: Manifest, deployment: JobDeployment, access: Sequence[Access]) -> TenantKeys:
    """The keys of the run's tenant that the actor's `access` grants.

    Raises:
        RunRequestError: if it grants any, and the run's envelopes are not all of one tenant with a name.
    """
    if not any(is_of_tenant((*entry.read, *entry.write)) for entry in access if entry.kind == "bucket"):
        return TenantKeys()
    tenants = {member.tenant for member in manifest.members}
    name = folder_name(min(tenants)) if len(tenants) == 1 else None
    if name is None:
        raise RunRequestError(
            f"access of actor {manifest.actor!r} names {TENANT}, and this run has no tenant with a name for keys: start tasks "
            "with tokens whose claim gateway.jwt.tenant has one value of letters, digits and _ . @ = -, at most 64"
        )
    data, results = (S3Prefix.from_uri(uri) for uri in (deployment.data_uri, deployment.results_uri))
    return tenant_keys(access, name, data=data, results=results)


def _stored(manifest: Manifest) -> list[str] | None:
    """What the keys of the run's stored envelopes begin with; None if these are too many, or not all known yet."""
    keys = [member.envelope_key for member in manifest.members if member.envelope_key is not None]
    if manifest.linger or len(keys) > _MOST_STORED:
        return None
    folder = pending_prefix(manifest.actor)
    return [key[: len(folder) + _DIGEST_CHARACTERS] for key in keys]


def _policy(
    manifest: Manifest, deployment: JobDeployment, code: Iterable[str], stored: Sequence[str], of_tenant: TenantKeys
) -> str:
    # S3A asks for a folder by its name without the slash too, and fails if it may not. Numbers of runs have a fixed
    # width, so `…/0000000042*` matches this run's folder and nothing else.
    run = f"{deployment.bucket}/{run_prefix(manifest.actor, manifest.number).rstrip('/')}"
    scratch = _object_path(deployment.data_uri) + scratch_prefix(manifest.actor, manifest.number).rstrip("/")
    pending = [f"{deployment.bucket}/{beginning}" for beginning in stored]
    # A job must not write its manifest, by which the completion routes its results. `attempts*` includes the marker
    # `attempts_$folder$` of EMRFS. EMR Serverless writes the logs with the permissions of the run.
    # A resident run also writes in the folders of its batches. Only the digest protects their manifests, which are copies.
    folders_written = (ATTEMPTS_FOLDER, LOGS_FOLDER, *([BATCHES_FOLDER] if manifest.linger else []))
    written = (*(f"{run}/{folder}*" for folder in folders_written), f"{scratch}*")
    resource = f"arn:{deployment.partition}:s3:::".__add__
    statements: list[dict[str, object]] = [
        {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": [
                resource(name) for name in (f"{run}*", *(f"{each}*" for each in pending), *code, *of_tenant.read)
            ],
        },
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
            "Resource": [resource(name) for name in (*written, *of_tenant.written)],
        },
    ]
    folders: dict[str, list[str]] = defaultdict(list)
    # S3A lists where it finds no object. The names below `pending/` are digests, which say nothing.
    own = (run, *([f"{deployment.bucket}/{pending_prefix(manifest.actor)}"] if pending else []), scratch)
    for pattern in (*(f"{folder}*" for folder in own), *of_tenant.read, *of_tenant.written):
        bucket, _, prefix = pattern.partition("/")
        folders[bucket].append(prefix)
    for bucket, prefixes in folders.items():
        condition = {"StringLike": {"s3:prefix": prefixes}}
        statements.append(
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": resource(bucket), "Condition": condition}
        )
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _object_path(uri: str) -> str:
    """`bucket/key` of an `s3://` URI."""
    parts = urlsplit(uri)
    return f"{parts.netloc}{parts.path}"


def _patterns(uris: Iterable[str]) -> list[str]:
    """One pattern for each bucket: the longest common prefix of its objects."""
    by_bucket: dict[str, list[str]] = defaultdict(list)
    for uri in uris:
        name = _object_path(uri)
        by_bucket[name.partition("/")[0] + "/"].append(name)
    return [
        commonprefix(paths) + "*" if len(paths) > 1 else paths[0]  # noqa: RUF071 - patterns match by character
        for paths in by_bucket.values()
    ]
