"""Connects to a deployed mesh by its `local.json` or by its namespace on AWS, and signs calls (SigV4)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import botocore.session
from boto3.session import Session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from asya.client.errors import MeshError, UnreachableError
from asya.protocol import names
from asya.protocol.keys import S3Prefix

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sts import STSClient

LOCAL_FILE = "local.json"

_EXPIRED = frozenset({
    "ExpiredToken", "ExpiredTokenException", "RequestExpired", "UnauthorizedSSOTokenError", "SSOTokenLoadError",
    "TokenRetrievalError",
})  # fmt: skip
"""The errors of credentials that were valid once."""

# botocore's setting → (config key, variable, default, conversion). No variable and no file of the user is read, so the
# user's own AWS configuration never reaches a local cloud.
_ISOLATED_SETTINGS = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
    "ca_bundle": (None, None, None, None),
    "use_fips_endpoint": (None, None, False, None),
    "use_dualstack_endpoint": (None, None, False, None),
}


@dataclass(frozen=True)
class Connection:
    """The addresses of a mesh, and a session with the user's credentials.

    Attributes:
        gateway_url: The URL of the gateway, without a trailing slash.
        data: The base of references in payloads.
        results: The prefix of the objects that x-sink writes.
        endpoint_url: The endpoint of all AWS services of a local cloud; None for AWS itself.
        emr_endpoint_url: The endpoint of EMR Serverless of a local cloud.
    """

    namespace: str
    region: str
    gateway_url: str
    data: S3Prefix
    results: S3Prefix
    session: Session = field(repr=False)
    endpoint_url: str | None = None
    emr_endpoint_url: str | None = None

    def sqs(self) -> SQSClient:
        """Create a client for the mesh's queues."""
        return self.session.client("sqs", self.region, endpoint_url=self.endpoint_url, config=self._config)

    def s3(self) -> S3Client:
        """Create a client for the mesh's buckets."""
        return self.session.client("s3", self.region, endpoint_url=self.endpoint_url, config=self._config)

    def dynamodb(self) -> DynamoDBClient:
        """Create a client for the mesh's tables."""
        return self.session.client("dynamodb", self.region, endpoint_url=self.endpoint_url, config=self._config)

    def emr_serverless(self) -> EMRServerlessClient:
        """Create a client for the mesh's job runs."""
        endpoint = self.emr_endpoint_url
        return self.session.client("emr-serverless", self.region, endpoint_url=endpoint, config=self._config)

    def functions(self) -> LambdaClient:
        """Create a client for the mesh's functions."""
        return self.session.client("lambda", self.region, endpoint_url=self.endpoint_url, config=self._config)

    def logs(self) -> CloudWatchLogsClient:
        """Create a client for the logs of the mesh's functions."""
        return self.session.client("logs", self.region, endpoint_url=self.endpoint_url, config=self._config)

    def sts(self) -> STSClient:
        """Create a client that tells whose credentials these are."""
        return self.session.client("sts", self.region, endpoint_url=self.endpoint_url, config=self._config)

    @property
    def _config(self) -> Config | None:
        if self.endpoint_url is None:
            return None
        # A local cloud is on loopback: it needs no proxy, and it addresses buckets by path.
        return Config(proxies={}, s3={"addressing_style": "path"}, retries={"total_max_attempts": 2})


def read_local(state: Path) -> Connection:
    """Connect to the local cloud in a state folder, with the access key of its operator.

    Raises:
        MeshError: There is no local cloud, or its file is invalid.
    """
    path = state / LOCAL_FILE
    try:
        description = json.loads(path.read_text())
        core = botocore.session.Session(session_vars=_ISOLATED_SETTINGS)
        core.set_credentials(description["access_key"], description["secret_key"])
        return Connection(
            namespace=description["namespace"],
            region=description["region"],
            gateway_url=description["gateway_url"].rstrip("/"),
            data=S3Prefix(description["data_bucket"], description["data_prefix"]),
            results=S3Prefix(description["results_bucket"], description["results_prefix"]),
            session=Session(botocore_session=core, region_name=description["region"]),
            endpoint_url=description["endpoint_url"],
            emr_endpoint_url=description["emr_endpoint_url"],
        )
    except FileNotFoundError:
        raise UnreachableError(
            f"no mesh is running here: {path} does not exist",
            "Start one with `asya dev` or `asya local up`, select its folder with --state, or a mesh on AWS with --namespace.",
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MeshError(
            f"{path} does not describe a local cloud ({type(error).__name__}: {error})",
            "Run `asya local up` to write the file again.",
        ) from error


def find_on_aws(namespace: str, region: str | None = None, profile: str | None = None) -> Connection:
    """Connect to a mesh on AWS, in the account of the user's credentials.

    Raises:
        MeshError: Credentials or the region are missing, or the mesh is not deployed there.
    """
    try:
        session = Session(region_name=region, profile_name=profile)
        if session.region_name is None:
            raise MeshError("no AWS region is configured", "Set --region or AWS_REGION.")
        stacks = session.client("cloudformation")
        gateway = _outputs(stacks, names.stack_name(namespace, "gateway"))
        state = _outputs(stacks, names.stack_name(namespace, "state"))
        return Connection(
            namespace=namespace,
            region=session.region_name,
            gateway_url=gateway["GatewayUrl"].rstrip("/"),
            data=S3Prefix.from_uri(state["DataUri"]),
            results=S3Prefix.from_uri(state["ResultsUri"]),
            session=session,
        )
    except (BotoCoreError, ClientError) as error:
        raise _not_found(namespace, error) from error
    except KeyError as error:
        raise MeshError(
            f"the stacks of the mesh {namespace!r} have no output {error}",
            "Deploy the mesh again with `asya deploy` of this version.",
        ) from error


def _not_found(namespace: str, error: BotoCoreError | ClientError) -> UnreachableError:
    """Return the error for a mesh that cannot be looked up on AWS, with what to type against its cause."""
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
    problem = f"cannot find the mesh {namespace!r} on AWS: {error}"
    if code in _EXPIRED:
        problem, advice = "your AWS credentials have expired", "Log in again, such as by `aws sso login`."
    elif code in {"NoCredentialsError", "PartialCredentialsError"}:
        problem, advice = "there are no AWS credentials", "Log in as for the AWS CLI, or give --profile NAME."
    elif code == "ProfileNotFound":
        advice = "`aws configure list-profiles` shows the profiles; give one of them with --profile NAME."
    elif code == "ValidationError":  # no such stack
        advice = "Give its namespace with the stage, such as --namespace shop-prod, and its --region."
    else:
        advice = "Check the namespace with its stage, the region and your AWS credentials."
    return UnreachableError(problem, advice)


def _outputs(stacks: CloudFormationClient, name: str) -> dict[str, str]:
    outputs = stacks.describe_stacks(StackName=name)["Stacks"][0].get("Outputs", [])
    return {output["OutputKey"]: output["OutputValue"] for output in outputs}


def signable(url: str) -> str:
    """Return a URL encoded as its signature has it: a space is `%20`, and only unreserved characters are plain.

    The receiver decodes path and query and encodes them again before it checks the signature. Another encoding is refused (403).
    """
    parts = urlsplit(url)
    path = "/".join(quote(unquote(segment), safe="") for segment in parts.path.split("/"))
    query = urlencode(parse_qsl(parts.query, keep_blank_values=True), quote_via=quote, safe="")
    return parts._replace(path=path, query=query).geturl()


def signed_headers(
    connection: Connection, method: str, url: str, body: bytes, headers: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers of a request with its signature.

    Args:
        connection: The mesh, with the user's credentials.
        method: The method of the request.
        url: The whole URL, as `signable` returns it.
        body: The body as it is sent.
        headers: The other headers.

    Raises:
        MeshError: There are no credentials, or they have expired.
    """
    request = AWSRequest(method, url, data=body, headers={"host": urlsplit(url).netloc, **headers})
    try:
        credentials = connection.session.get_credentials()
        if credentials is None:
            raise MeshError("there are no AWS credentials", "Configure them as for the AWS CLI.")
        SigV4Auth(credentials, "execute-api", connection.region).add_auth(request)
    except BotoCoreError as error:  # such as a login that has expired
        raise MeshError(f"the AWS credentials cannot be used: {error}", "Log in as for the AWS CLI.") from error
    return dict(request.headers.items())
