"""The keys of a deployment in the mesh file: its account, region, KMS key and network, and where the spans of traces go."""

import re
from typing import Annotated, Any

from msgspec import Meta, Struct
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from asya.protocol.mesh_keys import Texts
from asya_infra.mesh_file.sections import Written

_KEY_ARN = re.compile(r"arn:aws[a-z-]*:kms:([a-z0-9-]+):[0-9]{12}:key/[A-Za-z0-9-]+")


def _check_account(text: str) -> str:
    if not re.fullmatch(r"[0-9]{12}", text):
        raise ValueError(f"should be the 12 digits of an AWS account; got {text!r}")
    return text


def _check_region(text: str) -> str:
    if not re.fullmatch(r"[a-z]{2}(-[a-z]+)+-[0-9]", text):
        raise ValueError(f"should be an AWS region such as eu-central-1; got {text!r}")
    return text


def _check_key(text: str) -> str:
    if not _KEY_ARN.fullmatch(text):
        alias = "; an alias will not do, because policies name the key itself" if ":alias/" in text else ""
        form = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
        raise ValueError(f"should be the ARN of a KMS key such as {form}; got {text!r}{alias}")
    return text


Account = Annotated[str, AfterValidator(_check_account)]
Region = Annotated[str, AfterValidator(_check_region)]
KmsKey = Annotated[str, AfterValidator(_check_key)]


def region_of_key(arn: str) -> str:
    """Return the region of a KMS key.

    Args:
        arn: a valid `KmsKey`.
    """
    return arn.split(":")[3]


class VpcSection(Struct, frozen=True, kw_only=True):
    """The network of functions or job runs."""

    subnets: Annotated[Texts, Meta(min_length=1)]
    """The subnets, by their ids."""
    security_groups: Annotated[Texts, Meta(min_length=1)]
    """The security groups, by their ids."""


LOCAL_COLLECTOR = "http://localhost:4318"

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,4})?)%")


def _parse_share(text: Any) -> float:
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"should be a share such as 5%; got {text!r}")
    if not 0 < float(match[1]) <= 100:
        raise ValueError(f"should be more than 0% and at most 100%; got {text}")
    return float(match[1]) / 100


Share = Annotated[
    float, BeforeValidator(_parse_share), WithJsonSchema({"type": "string", "pattern": f"^{_PERCENT.pattern}$"})
]


class TelemetrySection(Struct, frozen=True, kw_only=True):
    """The dashboards, and where functions send the spans of traces; neither by default."""

    dashboards: bool = False
    """Whether the mesh has its two dashboards in CloudWatch."""
    otlp: str | None = None
    """The base URL of a collector that takes OTLP over HTTP."""
    collector: Texts = ()
    """The ARNs of Lambda layers with a collector and its configuration; it listens at `http://localhost:4318`."""
    xray: bool = False
    """Whether spans go to X-Ray, over its OTLP endpoint."""
    sample: Annotated[Share, Meta(extra_json_schema={"default": "100%"})] = 1.0
    """The share of traces that are recorded."""
    written: Written = {}

    @property
    def endpoint(self) -> str | None:
        """The base URL of the collector; None without one."""
        return self.otlp or (LOCAL_COLLECTOR if self.collector else None)

    @property
    def is_on(self) -> bool:
        """Whether functions record spans."""
        return self.xray or self.endpoint is not None
