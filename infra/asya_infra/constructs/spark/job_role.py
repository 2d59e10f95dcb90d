"""The role of all job runs. A session policy narrows each run to its actor and its own files."""

from constructs import Construct

from asya_infra.constructs.actors.heavy_actor import run_access
from asya_infra.constructs.role import mesh_role
from asya_infra.constructs.spark.job_code import JobCode
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.table import section_of
from asya_infra.permissions import spark


def job_role(scope: Construct, mesh: Mesh, code: JobCode) -> None:
    """Add the role with the permissions of all heavy actors."""
    heavy = spark.heavy_actors(mesh.table)
    access = [grant for name in heavy for grant in run_access(mesh, name)]
    jobs = [actor.spark for name in heavy if (actor := section_of(mesh.file, name)).spark]
    files = [address for job in jobs for address in (*job.archives, *job.py_files)]
    grants = [
        *spark.job(mesh.addresses, access, code.bucket, code.keys),
        *spark.referenced_files(mesh.addresses, files),
    ]
    mesh_role(Construct(scope, "Job"), mesh, spark.JOB, "emr-serverless.amazonaws.com", grants)
