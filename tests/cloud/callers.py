"""Callers of a deployed gateway, each with its own credentials."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from asya.tasks.reporting.aws.gateway_client import address_of
from asya_local.state_folder import LocalConnection, StateFolder

if TYPE_CHECKING:
    from tests.cloud.deployed_cloud import DeployedCloud


@dataclass(frozen=True)
class ApiCaller:
    """A caller with an AWS key or a token; without both it is anonymous."""

    url: str
    region: str
    credentials: Credentials | None
    token: str | None = None
    pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False, maxsize=16))

    def call(self, method: str, path: str, body: object = None, **query: str) -> tuple[int, Any]:
        """Makes a call; returns the status and the JSON of the response."""
        url = self.url + path + (f"?{urlencode(query)}" if query else "")
        data = json.dumps(body).encode() if body is not None else b""
        response = self.pool.request(
            method, address_of(url), body=data, headers=self.signed(method, url, data), redirect=False, timeout=60.0
        )
        return response.status, json.loads(response.data) if response.data else None

    def transport(self, library: Any) -> Any:
        """The transport of the asynchronous clients of a library (httpx or httpx2); None for its own."""
        return None

    def signed(self, method: str, url: str, data: bytes) -> dict[str, str]:
        """The headers of a request: signed if the caller has a key, with its token if it has one."""
        headers = {"host": urlsplit(url).netloc} | ({"content-type": "application/json"} if data else {})
        headers |= {"authorization": f"Bearer {self.token}"} if self.token is not None else {}
        request = AWSRequest(method, url, data=data, headers=headers)
        if self.credentials is not None:
            SigV4Auth(self.credentials, "execute-api", self.region).add_auth(request)
        return dict(request.headers.items())


def operator(cloud: DeployedCloud) -> ApiCaller:
    """The operator of the mesh."""
    connection = cloud.mesh.connection
    return ApiCaller(connection.gateway_url, connection.region, connection.session.get_credentials())


def anonymous(cloud: DeployedCloud) -> ApiCaller:
    """A caller that signs nothing."""
    return ApiCaller(cloud.mesh.connection.gateway_url, cloud.mesh.connection.region, None)


def iam_user(cloud: DeployedCloud, name: str) -> ApiCaller:
    """Creates an IAM user that may call the API but is not an operator."""
    iam = cloud.client("iam")
    iam.create_user(UserName=name)
    statement = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=name, PolicyName="call", PolicyDocument=document)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    connection = cloud.mesh.connection
    return ApiCaller(connection.gateway_url, connection.region, Credentials(key["AccessKeyId"], key["SecretAccessKey"]))


def token_caller(cloud: DeployedCloud, token: str | None) -> ApiCaller:
    """A caller of the token API; without a token it is anonymous."""
    connection = LocalConnection.read(StateFolder.at(cloud.state).connection)
    assert connection is not None
    assert connection.jwt_gateway_url is not None
    return ApiCaller(connection.jwt_gateway_url, connection.region, None, token)
