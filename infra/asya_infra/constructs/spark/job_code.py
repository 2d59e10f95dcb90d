"""The code of job runs, uploaded as assets."""

from dataclasses import dataclass

from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from asya_infra.build.jobs import build_jobs
from asya_infra.mesh import Mesh


@dataclass(frozen=True)
class JobCode:
    """The entry point of a run, the zips that it imports, and the archive of its packages."""

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
        packages = files.packages
        return cls(
            entry_point=Asset(scope, "EntryPoint", path=str(files.entry_point)),
            library=Asset(scope, "Library", path=str(files.library)),
            jobs=Asset(scope, "Jobs", path=str(files.jobs)),
            packages=None
            if packages is None
            else Asset(scope, "Packages", path=str(packages.archive), asset_hash=packages.digest),
        )

    @property
    def py_files(self) -> list[str]:
        """The `s3://` URIs of the zips."""
        return [self.library.s3_object_url, self.jobs.s3_object_url]
