"""The values of an AWS account that the mesh file names: the account, its region, its KMS key and its network."""

import re
from typing import Annotated

from msgspec import Meta, Struct
from pydantic import AfterValidator

from asya.protocol.mesh_keys import Texts

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
