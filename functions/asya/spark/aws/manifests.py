"""Manifests of job runs: writing one is what forms a run (`protocol §10`)."""

from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_missing, is_precondition_failure
from asya.protocol.job_runs import Manifest, manifest_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_decoder = msgspec.json.Decoder(Manifest)


class ManifestError(RuntimeError):
    """A manifest that this version of asya cannot read."""


class Manifests:
    """The manifests in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        # The one read last: whoever watches a run reads its manifest again and again, and it never changes.
        self._last: tuple[str, Manifest] | None = None

    def create(self, manifest: Manifest) -> bool:
        """Form the run: write its manifest unless there is one.

        Returns:
            False if a run of this number was formed before, by whomever and of whatever envelopes.
        """
        try:
            self._s3.put_object(
                Bucket=self._bucket,
                Key=manifest_key(manifest.actor, manifest.number),
                Body=msgspec.json.encode(manifest),
                ContentType="application/json",
                IfNoneMatch="*",
            )
        except ClientError as error:
            if is_precondition_failure(error):
                return False
            raise
        return True

    def read(self, actor: str, number: int) -> Manifest | None:
        """A run's manifest, None if there is none.

        Raises:
            ManifestError: if it is of another version.
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
            raise ManifestError(f"s3://{self._bucket}/{key} is no manifest of this version of asya: {error}") from error
        self._last = (key, manifest)
        return manifest

    def exists(self, actor: str, number: int) -> bool:
        """Whether a run of this number was formed."""
        try:
            self._s3.head_object(Bucket=self._bucket, Key=manifest_key(actor, number))
        except ClientError as error:
            if is_missing(error):
                return False
            raise
        return True
