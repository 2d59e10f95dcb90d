"""What an account has, as far as its user may read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from asya_infra.preflight.demand import NamedResource


@dataclass(frozen=True)
class Unknown:
    """A fact that could not be read.

    Attributes:
        reason: the error of AWS.
        action: the IAM action that reads it.
    """

    reason: str
    action: str


@dataclass(frozen=True)
class Identity:
    """Who calls, and where.

    Attributes:
        arn: the ARN of the caller.
    """

    account: str
    arn: str
    region: str


@dataclass(frozen=True)
class Concurrency:
    """The concurrent executions of Lambda.

    Attributes:
        total: the quota of the account and region.
        unreserved: the part that no function has reserved.
        own: what the deployed functions of this mesh have reserved.
    """

    total: int
    unreserved: int
    own: int = 0


@dataclass(frozen=True)
class IamUsage:
    """The number of roles and customer managed policies, and their quotas."""

    roles: int
    roles_quota: int
    policies: int
    policies_quota: int


@dataclass(frozen=True)
class DeployedStack:
    """A stack of the mesh that exists.

    Attributes:
        status: the status of CloudFormation, such as `UPDATE_COMPLETE`.
        resources: the tables, buckets, queues and log groups in it.
        roles, policies: the number of IAM roles and of managed policies in it.
    """

    status: str
    resources: frozenset[NamedResource] = frozenset()
    roles: int = 0
    policies: int = 0


@dataclass(frozen=True)
class CustomerKey:
    """The customer managed key of the mesh file.

    Attributes:
        state: the state of KMS, such as `Enabled` or `PendingDeletion`.
        usage, spec: `ENCRYPT_DECRYPT` and `SYMMETRIC_DEFAULT` for a key that encrypts data.
        principals: the services, accounts and roles that its policy allows something.
        unsourced: those of them that it allows something without a condition on the source of an event.
    """

    state: str
    usage: str
    spec: str
    principals: frozenset[str] | Unknown
    unsourced: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CodeKey:
    """The key of the bucket of `cdk bootstrap`, which has the code of jobs.

    Attributes:
        arn: the ARN of a customer managed key; None for the key `aws/s3`, and without KMS.
        principals: the services, accounts and roles that the policy of the customer managed key allows something.
    """

    arn: str | None = None
    principals: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Account:
    """What an account has. Each fact may be unknown, because its user may not read it.

    Attributes:
        bootstrap_version: None without `cdk bootstrap`.
        spark_vcpu: the quota of EMR Serverless, in vCPU at once.
        stacks: the deployed stacks of the mesh by their names.
        code_key: the key of the code of jobs; None if the mesh has no jobs.
        kms_key: None if the mesh has no customer managed key, or it does not exist.
        existing: those of the demanded resources that exist, by kind.
        event_buckets: whether each bucket of a trigger sends events to EventBridge; None for one that does not exist.
        event_buses: the names of the event buses.
    """

    identity: Identity
    bootstrap_version: int | Unknown | None
    concurrency: Concurrency | Unknown
    spark_vcpu: int | Unknown
    iam: IamUsage | Unknown
    stacks: Mapping[str, DeployedStack] | Unknown
    code_key: CodeKey | Unknown | None = None
    kms_key: CustomerKey | Unknown | None = None
    existing: Mapping[str, frozenset[NamedResource] | Unknown] = field(default_factory=dict)
    event_buckets: Mapping[str, bool | Unknown | None] = field(default_factory=dict)
    event_buses: frozenset[str] | Unknown = frozenset()
