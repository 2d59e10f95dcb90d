"""The permissions of a heavy actor's job runs, from its section of the mesh file."""

from asya_infra.addresses import Addresses
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.table import section_of
from asya_infra.permissions import spark
from asya_infra.permissions.access import access_grants, catalog_grants
from asya_infra.permissions.encryption import use_key
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import secret_grants


def run_access(mesh: MeshFile, addresses: Addresses, actor: str, key: str | None = None) -> list[Grant]:
    """Return what the job runs of an actor may do beside their own files: scratch, catalog, `access`, `secrets`, the key.

    The access policy belongs to the role and to the session of each run, so these take nothing of the session policy.

    Args:
        mesh: the mesh file.
        addresses: the addresses of the mesh.
        actor: the name of the heavy actor.
        key: the ARN of the customer managed key; None without one.
    """
    section = section_of(mesh, actor)
    access = access_grants(section.access, addresses, by_s3a=True)
    secrets = secret_grants(section.secrets.values(), addresses)
    has_catalog = section.spark is not None and section.spark.catalog == "glue"
    catalog = catalog_grants(addresses) if has_catalog else []
    grants = [*spark.scratch(addresses, actor), *catalog, *access, *secrets]
    return [*grants, *use_key(key, grants, addresses)]


def run_files(mesh: MeshFile, addresses: Addresses, actor: str, code: str) -> list[Grant]:
    """Return what the job runs of an actor may do with their own files, their code and the files that the mesh file lists.

    Args:
        mesh: the mesh file.
        addresses: the addresses of the mesh.
        actor: the name of the heavy actor.
        code: a pattern for the objects with the code of job runs.
    """
    job = section_of(mesh, actor).spark
    listed = spark.referenced_files(addresses, (*job.archives, *job.py_files)) if job is not None else []
    return [*spark.job(addresses, actor, code, lingers=job is not None and job.linger > 0), *listed]
