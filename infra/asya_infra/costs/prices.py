"""The list prices of AWS that the costs of a mesh are computed with, each with its source."""

from dataclasses import dataclass
from typing import Final

from asya.capabilities.operations.prices import prices_of

REGION: Final = "us-east-1"
DATE: Final = "November 2026"


@dataclass(frozen=True, slots=True)
class Price:
    """A list price without free tiers, in `REGION` at `DATE`.

    Attributes:
        service: the service that charges it.
        dollars: the price of one unit.
        unit: what is charged.
        source: the page that states it.
        per: the number of units for which AWS states the price.
    """

    service: str
    dollars: float
    unit: str
    source: str
    per: int = 1

    @property
    def text(self) -> str:
        """The price as AWS states it, such as `$0.40 per million requests`."""
        stated = self.dollars * self.per
        number = f"{stated:.10f}".rstrip("0")
        whole, _, decimals = number.partition(".")
        many = {1: "", 1_000_000: "million "}.get(self.per, f"{self.per:,} ")
        return f"${whole}.{decimals.ljust(2, '0')} per {many}{self.unit}"


def _million(service: str, dollars: float, unit: str, source: str) -> Price:
    return Price(service, dollars / 1e6, unit, source, 1_000_000)


_LAMBDA = "https://aws.amazon.com/lambda/pricing/"
_DYNAMODB = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
_CLOUDWATCH = "https://aws.amazon.com/cloudwatch/pricing/"
_S3 = "https://aws.amazon.com/s3/pricing/"
_EMR = "https://aws.amazon.com/emr/pricing/"
_KMS = "https://aws.amazon.com/kms/pricing/"

SQS_REQUEST: Final = _million("SQS", 0.40, "requests", "https://aws.amazon.com/sqs/pricing/")
"""A request for each 64 KiB begun."""
LAMBDA_CALL: Final = _million("Lambda", 0.20, "calls", _LAMBDA)
LAMBDA_SECOND: Final = Price("Lambda", 0.0000133334, "GB-second", _LAMBDA)
"""ARM."""
POLLER_HOUR: Final = Price("Lambda", 0.00925, "poller-hour", _LAMBDA)
PROVISIONED_SECOND: Final = Price("Lambda", 0.0000033334, "provisioned GB-second", _LAMBDA)
"""ARM."""
WRITE_UNIT: Final = _million("DynamoDB", 0.625, "write units", _DYNAMODB)
READ_UNIT: Final = _million("DynamoDB", 0.125, "read units", _DYNAMODB)
PUT: Final = _million("S3", 5.00, "writes and listings", _S3)
GET: Final = _million("S3", 0.40, "reads", _S3)
HTTP_CALL: Final = _million("API Gateway", 1.00, "calls", "https://aws.amazon.com/api-gateway/pricing/")
OBJECT_EVENT: Final = _million("EventBridge", 1.00, "object events", "https://aws.amazon.com/eventbridge/pricing/")
LOG_GB: Final = Price("CloudWatch", 0.50, "GB of logs", _CLOUDWATCH)
METRIC: Final = Price("CloudWatch", 0.30, "custom metric and month", _CLOUDWATCH)
ALARM_METRIC: Final = Price("CloudWatch", 0.10, "metric of an alarm and month", _CLOUDWATCH)
DASHBOARD: Final = Price("CloudWatch", 3.00, "dashboard and month", _CLOUDWATCH)
KEY: Final = Price("KMS", 1.00, "key and month", _KMS)
KEY_REQUEST: Final = Price("KMS", 0.03 / 10_000, "requests", _KMS, 10_000)
_ARM = prices_of("ARM64")
VCPU_HOUR: Final = Price("EMR Serverless", _ARM.vcpu, "vCPU-hour", _EMR)
"""ARM, the default."""
SPARK_GB_HOUR: Final = Price("EMR Serverless", _ARM.memory, "GB-hour", _EMR)
"""ARM, the default."""

ALL: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, Price))
"""Every price, in the order of this module."""
