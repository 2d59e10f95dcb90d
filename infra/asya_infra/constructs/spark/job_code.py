"""The code of job runs, uploaded as assets."""

from dataclasses import dataclass

from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from asya_infra.build.archive import Archive
from asya_infra.build.jobs import build_jobs
from asya_infra.mesh import Mesh


@dataclass(frozen=True)
class JobCode:
    """The entry point of a run, the zip of its library, and the archives of its jobs and packages."""

    entry_point: Asset
    library: Asset
    jobs: Asset
    packages: Asset | None

    @classmethod
    def uploaded(cls, scope: Construct, mesh: Mesh) -> "JobCode":
        """Build the code and add its assets."""
        target = mesh.options.jobs_target(mesh.file.spark.application.architecture)
        files = build_jobs(
            mesh.options.build_folder,
            target,
            mesh.loaded.jobs_folder,
            hashed=mesh.file.requires_hashes,
            aws_client=mesh.jobs_call_aws,
        )
        return cls(
            entry_point=Asset(scope, "EntryPoint", path=str(files.entry_point)),
            library=Asset(scope, "Library", path=str(files.library)),
            jobs=_archive(scope, "Jobs", files.jobs),
            packages=None if files.packages is None else _archive(scope, "Packages", files.packages),
        )


def _archive(scope: Construct, name: str, packed: Archive) -> Asset:
    return Asset(scope, name, path=str(packed.archive), asset_hash=packed.digest)
