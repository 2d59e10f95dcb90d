"""ARNs, URLs and URIs of a mesh, computed from names. Stacks therefore need few exports."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from asya.protocol import names
from asya.protocol.keys import DATA_PREFIX, RESULTS_PREFIX, S3Prefix


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """The addresses of the resources of one mesh. Region and account may be CDK tokens.

    Attributes:
        data_bucket: an existing bucket for the data; None for the mesh's own bucket.
        results_bucket: an existing bucket for the results; None for the mesh's own bucket.
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
        """The name of the mesh's own bucket."""
        return names.bucket_name(self.namespace, self.account, self.region)

    @property
    def data(self) -> S3Prefix:
        """The base of references in payloads."""
        return S3Prefix(self.data_bucket, "") if self.data_bucket else S3Prefix(self.bucket, DATA_PREFIX)

    @property
    def results(self) -> S3Prefix:
        """The prefix of the objects that x-sink writes."""
        return S3Prefix(self.results_bucket, "") if self.results_bucket else S3Prefix(self.bucket, RESULTS_PREFIX)

    @property
    def queue_url_prefix(self) -> str:
        """The URL of a queue without the name of the queue."""
        return f"https://sqs.{self.region}.{self.url_suffix}/{self.account}/"

    @property
    def access_policy_prefix(self) -> str:
        """The ARN of an access policy without the policy name. It has the region, because IAM is global."""
        return f"arn:{self.partition}:iam::{self.account}:policy/{self.region}-"

    def access_policy_name(self, actor: str) -> str:
        """Return the name of a heavy actor's access policy."""
        return f"{self.region}-{names.access_policy_name(self.namespace, actor)}"

    def queue_arn(self, actor: str) -> str:
        """Return the ARN of the queue of an actor or a system function."""
        return self.arn("sqs", names.queue_name(self.namespace, actor))

    def dlq_arn(self, actor: str) -> str:
        """Return the ARN of the dead-letter queue of an actor or a system function."""
        return self.arn("sqs", names.dlq_name(self.namespace, actor))

    def table_arn(self, kind: str) -> str:
        """Return the ARN of a table of the mesh."""
        return self.arn("dynamodb", f"table/{names.table_name(self.namespace, kind)}")

    def role_arn(self, actor: str) -> str:
        """Return the ARN of the role of a function."""
        return self.role_arn_prefix + names.role_name(self.namespace, actor, self.region)

    def job_role_arn(self, actor: str) -> str:
        """Return the ARN of the role of a heavy actor's job runs."""
        return self.role_arn(names.job_role(actor))

    @property
    def role_arn_prefix(self) -> str:
        """The ARN of a role without its name."""
        return f"arn:{self.partition}:iam::{self.account}:role/"

    def boundary_arn(self, policy: str | None) -> str | None:
        """Return the ARN of a permissions boundary, from its ARN or its name; None for none."""
        if policy is None or policy.startswith("arn:"):
            return policy
        return f"arn:{self.partition}:iam::{self.account}:policy/{policy}"

    def function_arn(self, actor: str) -> str:
        """Return the ARN of the function of an actor or a system function."""
        return self.arn("lambda", f"function:{names.function_name(self.namespace, actor)}")

    def log_group_name(self, actor: str) -> str:
        """Return the name of the log group that a function or a step writes to."""
        return names.log_group(self.namespace, actor)

    def log_place(self, actor: str) -> str:
        """Return where a person finds the lines of a function or a step."""
        group, runner = self.log_group_name(actor), names.runner_of(actor)
        return f"{group} (streams of {names.function_name(self.namespace, runner)})" if runner in names.CREW else group

    def bucket_arn(self, bucket: str) -> str:
        """Return the ARN of a bucket."""
        return f"arn:{self.partition}:s3:::{bucket}"

    def objects_arn(self, bucket: str, pattern: str) -> str:
        """Return a pattern for objects in a bucket."""
        return f"{self.bucket_arn(bucket)}/{pattern}"

    def application_arn(self, application_id: str) -> str:
        """Return the ARN of a Spark application. The ARN of a run appends `/jobruns/…`."""
        return self.arn("emr-serverless", f"/applications/{application_id}")

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource in the region and account of the mesh."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def is_own_bucket(bucket: str, namespace: str) -> bool:
    """Return whether a bucket has the name of a mesh's own one, in whichever account and region."""
    return re.fullmatch(names.bucket_name(namespace, r"\d{12}", "[a-z0-9-]+"), bucket) is not None


def reference_of(address: str, namespace: str, data_bucket: str | None) -> str | None:
    """Return the reference of an S3 address in the data of a mesh, such as `jars/own.jar`; None for one elsewhere.

    Args:
        address: An address, such as `s3://bucket/data/jars/own.jar`.
        namespace: The mesh.
        data_bucket: The existing bucket for its data; None for its own bucket.
    """
    parts = urlsplit(address)
    if not is_on_s3(address):
        return None
    key = parts.path.lstrip("/")
    if data_bucket is not None:
        return key if parts.netloc == data_bucket else None
    if not is_own_bucket(parts.netloc, namespace) or not key.startswith(DATA_PREFIX):
        return None
    return key.removeprefix(DATA_PREFIX)


def is_on_s3(address: str) -> bool:
    """Return whether an address is one of S3."""
    return urlsplit(address).scheme in {"s3", "s3a"}
