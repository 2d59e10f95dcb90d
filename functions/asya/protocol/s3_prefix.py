"""A bucket with a prefix in it: where the data and the results of a mesh are."""

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class S3Prefix:
    """A bucket and a prefix in it. The prefix is empty or ends with a slash."""

    bucket: str
    prefix: str

    @classmethod
    def from_uri(cls, uri: str) -> "S3Prefix":
        """Parse `s3://bucket/prefix/`."""
        parts = urlsplit(uri)
        return cls(parts.netloc, parts.path.lstrip("/"))

    @property
    def uri(self) -> str:
        """The prefix in the form `s3://bucket/prefix/`."""
        return f"s3://{self.bucket}/{self.prefix}"
