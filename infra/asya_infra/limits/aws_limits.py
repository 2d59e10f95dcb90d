"""The limits of AWS that a mesh can reach, each with its source, and the report of one that is passed."""

from dataclasses import dataclass
from typing import Final, NamedTuple

_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
_CLOUDFORMATION = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"
_LAMBDA_VPC = "https://docs.aws.amazon.com/lambda/latest/api/API_VpcConfig.html"
_CLOUDWATCH = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html"
_SQS_SOURCE = "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"
_EMR_API = "https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html"
_EVENTBRIDGE = "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html"
_ALARM_API = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html"
_SQS_POLICIES = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-policies.html"
_SNS_POLICIES = "https://docs.aws.amazon.com/sns/latest/dg/sns-access-policy-language-api-permissions-reference.html#sns-policy-quotas"
_HTTP_API = "https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html"
_REST_API = (
    "https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-execution-service-limits-table.html"
)
_S3_BUCKET = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/BucketRestrictions.html"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of AWS.

    Attributes:
        value: the number that AWS enforces.
        unit: what the number counts.
        source: the page that states it.
        share: the part that a mesh may use.
        is_quota: whether an account may have more than this default.
    """

    value: int
    unit: str
    source: str
    share: float = 1.0
    is_quota: bool = False

    @property
    def usable(self) -> int:
        """The number that a mesh may use."""
        return int(self.value * self.share)


# IAM. White space in a policy does not count.
ROLE_INLINE_POLICIES: Final = Limit(10_240, "characters of all inline policies of a role", _IAM)
MANAGED_POLICY: Final = Limit(6_144, "characters of a managed policy", _IAM)
MANAGED_POLICIES_OF_A_ROLE: Final = Limit(10, "managed policies of a role", _IAM)
TRUST_POLICY: Final = Limit(2_048, "characters of a trust policy", _IAM)
ROLES_OF_AN_ACCOUNT: Final = Limit(1_000, "roles of an account", _IAM, is_quota=True)
MANAGED_POLICIES_OF_AN_ACCOUNT: Final = Limit(1_500, "managed policies of an account", _IAM, is_quota=True)
NAME_OF_A_ROLE: Final = Limit(64, "characters of a role's name", _IAM)

# CloudFormation.
TEMPLATE: Final = Limit(1_000_000, "bytes of a template", _CLOUDFORMATION, share=0.8)
RESOURCES_OF_A_STACK: Final = Limit(500, "resources of a stack", _CLOUDFORMATION, share=0.9)
OUTPUTS_OF_A_STACK: Final = Limit(200, "outputs of a stack", _CLOUDFORMATION)
PARAMETERS_OF_A_STACK: Final = Limit(200, "parameters of a stack", _CLOUDFORMATION)

# Lambda.
ENVIRONMENT: Final = Limit(4_096, "bytes of a function's environment variables", _LAMBDA)
CODE_AND_LAYERS: Final = Limit(250 * 1024 * 1024, "bytes of a function's code and layers, unzipped", _LAMBDA)
FUNCTION_POLICY: Final = Limit(20 * 1024, "bytes of a function's resource-based policy", _LAMBDA)
LAYERS: Final = Limit(5, "layers of a function", _LAMBDA)
FUNCTION_TIMEOUT: Final = Limit(900, "seconds of a function", _LAMBDA)
NAME_OF_A_FUNCTION: Final = Limit(64, "characters of a function's name", _LAMBDA)
# EMR Serverless has the same limits for the network of an application.
SUBNETS: Final = Limit(16, "subnets of a function", _LAMBDA_VPC)
SECURITY_GROUPS: Final = Limit(5, "security groups of a function", _LAMBDA_VPC)
CONCURRENCY_OF_AN_ACCOUNT: Final = Limit(1_000, "concurrent executions of an account", _LAMBDA, is_quota=True)
UNRESERVED_CONCURRENCY: Final = Limit(100, "concurrent executions that stay unreserved", _LAMBDA)
LEAST_SOURCE_CONCURRENCY: Final = Limit(2, "concurrent executions of an event source", _SQS_SOURCE)
MOST_SOURCE_CONCURRENCY: Final = Limit(1_000, "concurrent executions of an event source", _SQS_SOURCE)

# SQS, EventBridge, CloudWatch.
NAME_OF_A_QUEUE: Final = Limit(
    80,
    "characters of a queue's name",
    "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html",
)
VISIBILITY_TIMEOUT: Final = Limit(
    43_200,
    "seconds of a visibility timeout",
    "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html",
)
IN_FLIGHT: Final = Limit(
    120_000,
    "messages in flight of a queue",
    "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html",
)
QUEUE_POLICY: Final = Limit(
    8_192,
    "bytes of a queue's policy",
    _SQS_POLICIES,
)
STATEMENTS_OF_A_QUEUE: Final = Limit(20, "statements of a queue's policy", _SQS_POLICIES)
TOPIC_POLICY: Final = Limit(30 * 1024, "bytes of a topic's policy", _SNS_POLICIES)
STATEMENTS_OF_A_TOPIC: Final = Limit(100, "statements of a topic's policy", _SNS_POLICIES)
FILTER_COMBINATIONS: Final = Limit(
    150,
    "combinations of values of a subscription's filter policy",
    "https://docs.aws.amazon.com/sns/latest/dg/subscription-filter-policy-constraints.html",
)
KEY_POLICY: Final = Limit(
    32 * 1024,
    "bytes of a key's policy",
    "https://docs.aws.amazon.com/kms/latest/developerguide/resource-limits.html",
)
BUCKET_POLICY: Final = Limit(
    20 * 1024,
    "bytes of a bucket's policy",
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-policy-language-overview.html",
)
NOTIFICATIONS_OF_A_BUCKET: Final = Limit(
    100, "notifications of a bucket", "https://docs.aws.amazon.com/general/latest/gr/s3.html"
)
RULES_OF_AN_ACCOUNT: Final = Limit(300, "rules of an event bus", _EVENTBRIDGE, is_quota=True)
# An account may ask for more, but CloudFormation fails without it.
EVENT_PATTERN: Final = Limit(2_048, "characters of an event pattern", _EVENTBRIDGE)
TARGETS_OF_A_RULE: Final = Limit(5, "targets of a rule", _EVENTBRIDGE)
METRICS_OF_AN_ALARM: Final = Limit(10, "metrics of an alarm", _CLOUDWATCH)
ACTIONS_OF_AN_ALARM: Final = Limit(5, "actions of an alarm for one state", _CLOUDWATCH)
SECONDS_OF_AN_ALARM: Final = Limit(86_400, "seconds that an alarm looks at", _ALARM_API)
SECONDS_OF_A_SLOW_ALARM: Final = Limit(7 * 86_400, "seconds that an alarm with periods of an hour looks at", _ALARM_API)
DESCRIPTION_OF_AN_ALARM: Final = Limit(1_024, "characters of an alarm's description", _ALARM_API)
METRICS_OF_A_WIDGET: Final = Limit(500, "metrics of a widget", _CLOUDWATCH)
METRICS_OF_A_DASHBOARD: Final = Limit(2_500, "metrics of a dashboard", _CLOUDWATCH)
WIDGETS_OF_A_DASHBOARD: Final = Limit(500, "widgets of a dashboard", _CLOUDWATCH)
ALARMS_OF_AN_ACCOUNT: Final = Limit(5_000, "metric alarms of an account", _CLOUDWATCH, is_quota=True)

# API Gateway.
ROUTES_OF_AN_API: Final = Limit(300, "routes of an HTTP API", _HTTP_API)
INTEGRATIONS_OF_AN_API: Final = Limit(300, "integrations of an HTTP API", _HTTP_API)
AUTHORIZERS_OF_AN_API: Final = Limit(10, "authorizers of an HTTP API", _HTTP_API)
AUDIENCES: Final = Limit(50, "audiences of an authorizer", _HTTP_API)
RESOURCES_OF_A_REST_API: Final = Limit(300, "resources of a REST API", _REST_API)

# DynamoDB, S3, Systems Manager.
INDEXES_OF_A_TABLE: Final = Limit(
    20,
    "global secondary indexes of a table",
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
)
LIFECYCLE_RULES: Final = Limit(
    1_000,
    "lifecycle rules of a bucket",
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/how-to-set-lifecycle-configuration-intro.html",
)
PARAMETER_VALUE: Final = Limit(
    4_096,
    "bytes of a standard parameter",
    "https://docs.aws.amazon.com/general/latest/gr/ssm.html",
)

# All resources.
TAGS: Final = Limit(
    50, "tags of a resource", "https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html"
)
NAME_OF_A_STACK: Final = Limit(128, "characters of a stack's name", _CLOUDFORMATION)
NAME_OF_A_POLICY: Final = Limit(128, "characters of a managed policy's name", _IAM)
NAME_OF_AN_ALARM: Final = Limit(255, "characters of an alarm's name", _ALARM_API)
NAME_OF_A_RULE: Final = Limit(
    64, "characters of a rule's name", "https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html"
)
NAME_OF_A_BUCKET: Final = Limit(63, "characters of a bucket's name", _S3_BUCKET)
NAME_OF_A_TABLE: Final = Limit(
    255,
    "characters of a table's name",
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateTable.html",
)
NAME_OF_A_TOPIC: Final = Limit(
    256, "characters of a topic's name", "https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html"
)
NAME_OF_A_LOG_GROUP: Final = Limit(
    512,
    "characters of a log group's name",
    "https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html",
)
NAME_OF_A_DASHBOARD: Final = Limit(
    255,
    "characters of a dashboard's name",
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html",
)
NAME_OF_AN_APPLICATION: Final = Limit(
    64,
    "characters of an application's name",
    "https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_CreateApplication.html",
)
NAME_OF_AN_API: Final = Limit(
    128, "characters of an API's name", "https://docs.aws.amazon.com/apigatewayv2/latest/api-reference/apis.html"
)

# The days that CloudWatch offers to keep logs.
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
LOG_DAYS: Final = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180),
    *(365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)

# EMR Serverless.
CONCURRENT_RUNS: Final = Limit(1_000, "concurrent job runs of an application", _EMR_API)
IDLE_MINUTES: Final = Limit(
    10_080,
    "minutes until an idle application stops",
    "https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_AutoStopConfig.html",
)
RUN_MINUTES: Final = Limit(10_080, "minutes of a job run", _EMR_API)


class WorkerShape(NamedTuple):
    """The memory in gigabytes that EMR Serverless offers for a number of vCPU, in steps."""

    min_gb: int
    max_gb: int
    step_gb: int


# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html#worker-configs
WORKERS: Final = {
    1: WorkerShape(2, 8, 1),
    2: WorkerShape(4, 16, 1),
    4: WorkerShape(8, 30, 1),
    8: WorkerShape(16, 60, 4),
    16: WorkerShape(32, 120, 8),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A value beyond a limit.

    Attributes:
        stack: the name of the stack.
        resource: the path of the resource in the app, such as `Asya-shop-functions-3/score/Role`; empty for the stack.
        value: the value, in the unit of the limit.
        limit: the limit.
        advice: what to change.
        least: whether the limit is the lowest allowed value.
    """

    stack: str
    resource: str
    value: int
    limit: Limit
    advice: str
    least: bool = False

    def __str__(self) -> str:
        """Return a line for people: where, how much, the limit, what to do."""
        most = f"{self.limit.usable:,}"
        if self.limit.usable != self.limit.value:
            most += f" of {self.limit.value:,}"
        bound = "at least" if self.least else "at most"
        place = self.resource or self.stack
        return f"{place}: {self.value:,} {self.limit.unit}; {bound} {most}. {self.advice} ({self.limit.source})"
