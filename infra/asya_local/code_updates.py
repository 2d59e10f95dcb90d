"""Replaces the code of handlers and jobs in a running cloud, without a deployment of the templates."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from asya import registry
from asya.protocol import names
from asya_infra.build.functions import build_handlers
from asya_infra.build.jobs import pack_user_jobs
from asya_infra.mesh_file import to_table
from asya_infra.options import Options
from asya_local.account import ACCOUNT_ID, REGION, AccessKey, aws_client
from asya_local.sources import table_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from asya_infra.mesh_file import LoadedMesh

_JOB_CODE = "ASYA_JOB_CODE"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class CodeUpdate:
    """Replaces code in one cloud.

    New code gets a key of its own in the bucket of `cdk bootstrap`, as that of a deployment does: a run that has started, and
    a resident one, keep the code that they started with.
    """

    mesh: LoadedMesh
    options: Options
    application_id: str
    endpoint: str
    deployer: AccessKey

    def replace_handlers(self) -> None:
        """Give light actors, and the capabilities of the mesh file, the code of the handlers' folder.

        Calls at work end with the code that they started with.
        """
        folder = build_handlers(
            self.options.build_folder,
            self.options.packages_target,
            self.mesh.code_folder,
            table_bytes(self.mesh, self.application_id),
            hashed=self.mesh.mesh.requires_hashes,
        )
        key, functions = self._store(zipped(folder), ".zip"), self._client("lambda")
        table = to_table(self.mesh, existing_application=self.application_id)
        for actor in sorted(registry.with_own_code(table)):
            functions.update_function_code(
                FunctionName=names.function_name(self.mesh.namespace, actor), S3Bucket=self._bucket, S3Key=key
            )

    def replace_jobs(self) -> None:
        """Give the dispatcher the code of the jobs' folder, for the runs that it starts from now on."""
        archive = pack_user_jobs(self.options.build_folder, self.mesh.jobs_folder).archive
        key, functions = self._store(archive.read_bytes(), ".tgz"), self._client("lambda")
        for page in functions.get_paginator("list_functions").paginate():
            for function in page["Functions"]:
                variables = function.get("Environment", {}).get("Variables", {})
                if _JOB_CODE in variables:
                    functions.update_function_configuration(
                        FunctionName=function["FunctionName"],
                        Environment={"Variables": {**variables, _JOB_CODE: f"s3://{self._bucket}/{key}"}},
                    )

    def _store(self, content: bytes, suffix: str) -> str:
        key = f"asya-{self.mesh.namespace}/{sha256(content).hexdigest()}{suffix}"
        self._client("s3").put_object(Bucket=self._bucket, Key=key, Body=content)
        return key

    @property
    def _bucket(self) -> str:
        return f"cdk-{self.mesh.mesh.bootstrap_qualifier}-assets-{ACCOUNT_ID}-{REGION}"

    def _client(self, service: str) -> Any:
        return aws_client(service, self.endpoint, self.deployer)


def zipped(folder: Path) -> bytes:
    """Return a zip of the files in a folder; equal files give equal bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(str(file.relative_to(folder)), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (file.stat().st_mode & 0xFFFF) << 16
            archive.writestr(entry, file.read_bytes())
    return content.getvalue()
