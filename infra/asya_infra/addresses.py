"""Names turned into ARNs, URLs and URIs: every stack computes them, so that stacks need not export them to each other."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from asya.protocol import names

DATA_PREFIX = "data/"
RESULTS_PREFIX = "results/"


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


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """Where the things of one mesh are. Region and account may be placeholders that the deployment fills in.

    Attributes:
        data_bucket: an existing bucket for the data; None for the mesh's own.
        results_bucket: likewise for the results.
    """

    namespace: str
    partition: str
    region: str
    account: str
    url_suffix: str
    data_bucket: str | None = None
    results_bucket: str | None = None

    @property
    def bucket(self) -> str:
        """The mesh's own bucket."""
        return names.bucket_name(self.namespace, self.account, self.region)

    @property
    def data(self) -> S3Prefix:
        """What references in payloads are relative to."""
        return S3Prefix(self.data_bucket, "") if self.data_bucket else S3Prefix(self.bucket, DATA_PREFIX)

    @property
    def results(self) -> S3Prefix:
        """Where x-sink writes."""
        return S3Prefix(self.results_bucket, "") if self.results_bucket else S3Prefix(self.bucket, RESULTS_PREFIX)

    @property
    def queue_url_prefix(self) -> str:
        """A queue's URL is this and its name."""
        return f"https://sqs.{self.region}.{self.url_suffix}/{self.account}/"

    @property
    def access_policy_prefix(self) -> str:
        """The ARN of a heavy actor's access policy is this and the policy's name. Policies are global to an account."""
        return f"arn:{self.partition}:iam::{self.account}:policy/{self.region}-"

    def access_policy_name(self, actor: str) -> str:
        """The physical name of a heavy actor's access policy."""
        return f"{self.region}-{names.access_policy_name(self.namespace, actor)}"

    def queue_arn(self, actor: str) -> str:
        """The queue of an actor or of a system function."""
        return self.arn("sqs", names.queue_name(self.namespace, actor))

    def dlq_arn(self, actor: str) -> str:
        """The dead-letter queue of an actor or of a system function."""
        return self.arn("sqs", names.dlq_name(self.namespace, actor))

    def queue_arns_of_namespace(self) -> str:
        """A pattern for every queue whose name starts with the namespace."""
        return self.arn("sqs", names.queue_name(self.namespace, "*"))

    def table_arn(self, kind: str) -> str:
        """A DynamoDB table of the mesh."""
        return self.arn("dynamodb", f"table/{names.table_name(self.namespace, kind)}")

    def role_arn(self, actor: str) -> str:
        """The role of a function, or (`x-job`) of the job runs."""
        return f"arn:{self.partition}:iam::{self.account}:role/{names.role_name(self.namespace, actor, self.region)}"

    def log_group_name(self, actor: str) -> str:
        """Where a function logs."""
        return f"/aws/lambda/{names.function_name(self.namespace, actor)}"

    def bucket_arn(self, bucket: str) -> str:
        """A bucket."""
        return f"arn:{self.partition}:s3:::{bucket}"

    def objects_arn(self, bucket: str, pattern: str) -> str:
        """Objects in a bucket."""
        return f"{self.bucket_arn(bucket)}/{pattern}"

    def application_arn(self, application_id: str) -> str:
        """The Spark application; `/jobruns/…` follows for its runs."""
        return self.arn("emr-serverless", f"/applications/{application_id}")

    def arn(self, service: str, resource: str) -> str:
        """Anything in this region and account."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"
