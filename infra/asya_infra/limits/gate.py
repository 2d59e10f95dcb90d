"""The limit gate: refuses a synthesized mesh that an AWS account would refuse, or that would fail in it.

It checks templates, the unzipped size of functions, and the session policies of job runs.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from asya.heavy.run_request import JobDeployment, RunRequestError, run_request
from asya.heavy.run_sizes import sized_jobs
from asya.heavy.tenant_access import LONGEST_NAME
from asya.protocol import names
from asya.protocol.job_runs import Manifest, Member, run_id
from asya_infra.addresses import Addresses
from asya_infra.assembly import Template, read_assembly
from asya_infra.limits.aws_limits import CODE_AND_LAYERS, Violation
from asya_infra.limits.templates import check
from asya_infra.mesh import Mesh
from asya_infra.permissions.groups import heavy_actors

_ADVICE = "Put fewer packages into `requirements.txt` of the handlers and large files into a bucket, or make the actor a heavy one."
_NAMED = 3


def check_assets(folder: Path, templates: Mapping[str, Template]) -> Iterator[Violation]:
    """Check the functions of all templates.

    Args:
        folder: the output folder of the CDK, which has the assets.
        templates: the templates by the name of the stack.
    """
    for stack, template in templates.items():
        resources = template.get("Resources", {})
        for resource in resources.values():
            if resource["Type"] != "AWS::Lambda::Function":
                continue
            layers = [layer["Ref"] for layer in resource["Properties"].get("Layers", []) if "Ref" in layer]
            parts = [resource, *(resources[name] for name in layers if name in resources)]
            size = sum(_size(folder, part) for part in parts)
            if size > CODE_AND_LAYERS.usable:
                path = str(resource.get("Metadata", {}).get("aws:cdk:path", stack)).removesuffix("/Resource")
                yield Violation(stack, path, size, CODE_AND_LAYERS, _advice(folder, resource))


def _advice(folder: Path, function: Template) -> str:
    """Return what to do, with the largest files of the function's own code."""
    name = function.get("Metadata", {}).get("aws:asset:path")
    largest = _files(folder / name)[:_NAMED] if name else []
    named = ", ".join(f"{path.relative_to(folder / name)} ({size / 1e6:,.0f} MB)" for size, path in largest)
    return f"{_ADVICE} Its largest files are {named}." if named else _ADVICE


def _files(folder: Path) -> list[tuple[int, Path]]:
    return sorted(((path.stat().st_size, path) for path in folder.rglob("*") if path.is_file()), reverse=True)


def _size(folder: Path, resource: Template) -> int:
    name = resource.get("Metadata", {}).get("aws:asset:path")
    return _folder_size(folder / name) if name else 0


@cache
def _folder_size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


_ACCOUNT, _REGION = "1" * 12, "r" * names.REGION_LIMIT
_HASH = "0" * 64
_LATEST_RUN = 10**10 - 1
_LONGEST_TENANT = Member(id="", position=0, attempt=1, admitted_at="", tenant=f"claim:{'t' * LONGEST_NAME}#")


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
            members=(_LONGEST_TENANT,),
        )
        spec = mesh.table.actors[actor]
        for size, sized_job in sized_jobs(job):
            try:
                run_request(manifest, sized_job, deployment, spec.secrets, spec.access)
            except RunRequestError as error:
                yield f"actors.{actor}{size and f'.spark.sizes.{size}'}: {error}"


class LimitError(Exception):
    """The templates exceed limits of AWS. The message has a line for each."""


def check_mesh(mesh: Mesh, folder: Path) -> list[Violation]:
    """Check a synthesized mesh.

    Returns the default quotas that it exceeds. An account may have higher ones, and `asya doctor` reads them.

    Args:
        mesh: the mesh.
        folder: the output folder of the CDK, with the templates and the assets.

    Raises:
        AssemblyError: the folder is not the output of the CDK for a mesh.
        LimitError: the mesh exceeds a limit of AWS.
    """
    assembly = read_assembly(folder)
    violations = [*check(assembly.templates, assembly.sizes), *check_assets(folder, assembly.templates)]
    refusals = [*(each for each in violations if not each.limit.is_quota), *check_sessions(mesh)]
    if refusals:
        lines = "\n".join(f"  {refusal}" for refusal in refusals)
        raise LimitError(f"AWS would refuse this mesh:\n{lines}")
    return [each for each in violations if each.limit.is_quota]
