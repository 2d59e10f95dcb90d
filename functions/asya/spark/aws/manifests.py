"""The manifests of job runs; creating a manifest forms the run (`protocol §10`)."""

from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_missing, put_if_absent
from asya.protocol.job_runs import Manifest, manifest_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_decoder = msgspec.json.Decoder(Manifest)


class ManifestError(RuntimeError):
    """A manifest is missing, or this version of asya cannot read it."""


class Manifests:
    """The manifests in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        # The watch reads one manifest repeatedly, and a manifest never changes.
        self._last: tuple[str, Manifest] | None = None

    def create(self, manifest: Manifest) -> bool:
        """Forms a run: writes its manifest if that is absent.

        Returns:
            False if a run with this number exists, whatever its envelopes.
        """
        key = manifest_key(manifest.actor, manifest.number)
        return put_if_absent(self._s3, bucket=self._bucket, key=key, body=msgspec.json.encode(manifest))

    def read(self, actor: str, number: int) -> Manifest | None:
        """The manifest of a run; None if the run was never formed.

        Raises:
            ManifestError: if this version of asya cannot read it.
        """
        key = manifest_key(actor, number)
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        try:
            content = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        try:
            manifest = _decoder.decode(content)
        except msgspec.MsgspecError as error:
            raise ManifestError(
                f"this version of asya cannot read s3://{self._bucket}/{key}: {error}; deploy the version that wrote it"
            ) from error
        self._last = (key, manifest)
        return manifest

    def exists(self, actor: str, number: int) -> bool:
        """Whether a run with this number was formed."""
        try:
            self._s3.head_object(Bucket=self._bucket, Key=manifest_key(actor, number))
        except ClientError as error:
            if is_missing(error):
                return False
            raise
        return True
