"""The manifests of job runs; creating a manifest forms the run (`protocol §10`)."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.function.aws.conditional_writes import is_missing, put_if_absent
from asya.heavy.manifest_check import manifest_problem
from asya.heavy.manifest_lines import decode_manifest, encode_manifest
from asya.protocol.job_runs import Manifest, manifest_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_CHUNK = 256 * 1024


class ManifestError(RuntimeError):
    """A manifest is missing, does not fit its run, or this version of asya cannot read it."""


class Manifests:
    """The manifests in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        # The watch reads one manifest repeatedly, and a manifest never changes.
        self._last: tuple[str, Manifest, str] | None = None

    def create(self, manifest: Manifest) -> str | None:
        """Forms a run: writes its manifest if that is absent.

        Returns:
            The digest of the manifest; None if a run with this number exists, whatever its envelopes.
        """
        key, body = manifest_key(manifest.actor, manifest.number), encode_manifest(manifest)
        return (
            hashlib.sha256(body).hexdigest()
            if put_if_absent(self._s3, bucket=self._bucket, key=key, body=body)
            else None
        )

    def read(self, actor: str, number: int, digest: str = "") -> Manifest | None:
        """The manifest of a run; None if the run was never formed.

        Args:
            digest: the digest in the record of the run; empty if it has none.

        Raises:
            ManifestError: if it has another digest, does not fit the run, or this version of asya cannot read it.
        """
        found = self.read_with_digest(actor, number, digest)
        return found[0] if found is not None else None

    def read_with_digest(self, actor: str, number: int, digest: str = "") -> tuple[Manifest, str] | None:
        """The manifest of a run, as `read` gives it, and its digest.

        Raises:
            ManifestError: as `read`.
        """
        key = manifest_key(actor, number)
        if self._last is not None and self._last[0] == key and digest in ("", self._last[2]):
            return self._last[1:]
        try:
            body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"]
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        content = _Digested(body.iter_chunks(_CHUNK))
        manifest: Manifest | ValueError
        try:
            manifest = decode_manifest(content)
        except ValueError as error:
            manifest = error
        name, actual = f"s3://{self._bucket}/{key}", content.digest()
        if digest not in ("", actual):
            raise ManifestError(
                f"{name} was changed after the run was formed: its SHA-256 is {actual}, not {digest}. "
                "No result of the run is routed; write the original back, then redrive the message"
            )
        if isinstance(manifest, ValueError):
            raise ManifestError(
                f"this version of asya cannot read {name}: {manifest}; deploy the version that wrote it"
            ) from manifest
        problem = manifest_problem(manifest, actor, number)
        if problem is not None:
            raise ManifestError(f"{name} does not fit its run: {problem}. No result of the run is routed")
        self._last = (key, manifest, actual)
        return manifest, actual

    def exists(self, actor: str, number: int) -> bool:
        """Whether a run with this number was formed."""
        try:
            self._s3.head_object(Bucket=self._bucket, Key=manifest_key(actor, number))
        except ClientError as error:
            if is_missing(error):
                return False
            raise
        return True


class _Digested:
    """The pieces of a text, and its digest."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._hash.update(chunk)
            yield chunk

    def digest(self) -> str:
        """The digest of the whole text, also of what nobody has read."""
        for _ in self:
            pass
        return self._hash.hexdigest()
