"""How to reach one deployed mesh: the local cloud's `local.json`, or a mesh on AWS found by its namespace."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import botocore.session
from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol import names
from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

LOCAL_FILE = "local.json"

# Named by no variable and read from no file: what the developer has configured for AWS never reaches a local cloud.
_NOBODYS = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
    "ca_bundle": (None, None, None, None),
    "use_fips_endpoint": (None, None, False, None),
    "use_dualstack_endpoint": (None, None, False, None),
}


@dataclass(frozen=True)
class Place:
    """A bucket and a prefix in it: empty, or ending with a slash."""

    bucket: str
    prefix: str

    @property
    def uri(self) -> str:
        """`s3://bucket/prefix/`."""
        return f"s3://{self.bucket}/{self.prefix}"


@dataclass(frozen=True)
class Connection:
    """One mesh, and the credentials of the person asking.

    Attributes:
        gateway_url: Where the status endpoint answers, without a trailing slash.
        data: What references in payloads are relative to.
        results: Where x-sink writes.
        endpoint_url: Where all of AWS is, for a local cloud; None for AWS itself.
        emr_endpoint_url: Where EMR Serverless is, for a local cloud.
    """

    namespace: str
    region: str
    gateway_url: str
    data: Place
    results: Place
    session: Session = field(repr=False)
    endpoint_url: str | None = None
    emr_endpoint_url: str | None = None

    def sqs(self) -> SQSClient:
        """A client for the mesh's queues."""
        return self.session.client("sqs", self.region, endpoint_url=self.endpoint_url, config=self._config)

    def s3(self) -> S3Client:
        """A client for the mesh's buckets."""
        return self.session.client("s3", self.region, endpoint_url=self.endpoint_url, config=self._config)

    def dynamodb(self) -> DynamoDBClient:
        """A client for the mesh's tables."""
        return self.session.client("dynamodb", self.region, endpoint_url=self.endpoint_url, config=self._config)

    def emr_serverless(self) -> EMRServerlessClient:
        """A client for the mesh's job runs."""
        endpoint = self.emr_endpoint_url
        return self.session.client("emr-serverless", self.region, endpoint_url=endpoint, config=self._config)

    @property
    def _config(self) -> Config | None:
        if self.endpoint_url is None:
            return None
        # A local cloud is on loopback: no proxy stands before it, and buckets are found by path.
        return Config(proxies={}, s3={"addressing_style": "path"}, retries={"total_max_attempts": 2})


def read_local(state: Path) -> Connection:
    """The local cloud whose state folder this is, with the keys of its operator and nobody else's.

    Raises:
        CommandError: There is no local cloud, or its file cannot be read.
    """
    path = state / LOCAL_FILE
    try:
        described = json.loads(path.read_text())
        core = botocore.session.Session(session_vars=_NOBODYS)
        core.set_credentials(described["access_key"], described["secret_key"])
        return Connection(
            namespace=described["namespace"],
            region=described["region"],
            gateway_url=described["gateway_url"].rstrip("/"),
            data=Place(described["data_bucket"], described["data_prefix"]),
            results=Place(described["results_bucket"], described["results_prefix"]),
            session=Session(botocore_session=core, region_name=described["region"]),
            endpoint_url=described["endpoint_url"],
            emr_endpoint_url=described["emr_endpoint_url"],
        )
    except FileNotFoundError:
        raise CommandError(
            f"no local cloud is described in {path}",
            "Bring one up with `asya local up`, name its folder with --state, or name a mesh on AWS with --namespace.",
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(
            f"{path} does not describe a local cloud ({type(error).__name__}: {error})",
            "`asya local up` writes it anew.",
        ) from error


def find_on_aws(namespace: str, region: str | None = None) -> Connection:
    """The mesh of this namespace in the account of the caller's own AWS credentials.

    Raises:
        CommandError: There are no credentials or no region, or no such mesh is deployed there.
    """
    try:
        session = Session(region_name=region)
        if session.region_name is None:
            raise CommandError("no AWS region is configured", "Say which with --region, or set AWS_REGION.")
        stacks = session.client("cloudformation")
        gateway = _outputs(stacks, names.stack_name(namespace, "gateway"))
        state = _outputs(stacks, names.stack_name(namespace, "state"))
        return Connection(
            namespace=namespace,
            region=session.region_name,
            gateway_url=gateway["GatewayUrl"].rstrip("/"),
            data=place_of(state["DataUri"]),
            results=place_of(state["ResultsUri"]),
            session=session,
        )
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"the mesh {namespace!r} was not found on AWS: {error}") from error
    except KeyError as error:
        raise CommandError(
            f"the stacks of the mesh {namespace!r} have no output {error}",
            "Deploy the mesh with this version's `make deploy`.",
        ) from error


def _outputs(stacks: CloudFormationClient, name: str) -> dict[str, str]:
    found = stacks.describe_stacks(StackName=name)["Stacks"][0].get("Outputs", [])
    return {output["OutputKey"]: output["OutputValue"] for output in found}


def place_of(uri: str) -> Place:
    """`s3://bucket/prefix/` taken apart."""
    parts = urlsplit(uri)
    return Place(parts.netloc, parts.path.lstrip("/"))
