"""Authenticates and authorizes callers with MiniStack's IAM.

MiniStack has the secret keys. So the stand-in passes a request on to MiniStack's process, which checks the signature and names the
caller (`asya_local.authentication`).
"""

from __future__ import annotations

import base64
import json
import urllib.request
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from asya_local.authentication.admission import CALLER_PATH, SECRET_HEADER
from asya_local.emr.clients import client
from asya_local.emr.errors import access_denied, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from asya_local.emr.settings import EmrSettings

EMR_PRINCIPAL = "emr-serverless.amazonaws.com"
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class SignedRequest:
    """A request as received; its headers by lower-case name."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Principal:
    """The principal that signed a request, and the request."""

    arn: str
    request: SignedRequest


class IamClient:
    """The principals and policies of MiniStack's IAM."""

    def __init__(self, settings: EmrSettings, secret: str) -> None:
        self._settings = settings
        self._secret = secret
        self._iam: Any = client("iam", settings)
        self._s3: Any = client("s3", settings)

    def authenticate(self, request: SignedRequest) -> Principal:
        """Return the principal that signed a request.

        Raises:
            ServiceError: The request is not signed, is signed for another service, or has an invalid signature, key or token.
        """
        answer = self._ask_ministack(request)
        if "code" in answer:
            raise refused(answer["code"], answer["message"])
        if answer["service"] != "emr-serverless":
            message = "Credential should be scoped to correct service: 'emr-serverless'."
            raise refused("SignatureDoesNotMatch", message)
        return Principal(answer["arn"], request)

    def _ask_ministack(self, request: SignedRequest, **call: Any) -> dict[str, Any]:
        content = asdict(request) | {"body": base64.b64encode(request.body).decode(), "call": call}
        url = f"{self._settings.caller_endpoint}{CALLER_PATH}"
        question = urllib.request.Request(
            url, json.dumps(content).encode(), {SECRET_HEADER: self._secret, "content-type": "application/json"}
        )
        with _opener.open(question, timeout=30) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def authorize(self, caller: Principal, action: str, resource: str) -> None:
        """Check that the caller's policies allow the action on the resource, with its boundary and its session policies.

        Raises:
            ServiceError: AccessDeniedException, with the message of IAM.
        """
        context = {"iam:passedtoservice": EMR_PRINCIPAL} if action == "iam:PassRole" else {}
        answer = self._ask_ministack(caller.request, action=action, resource=resource, context=context)
        if not answer["allowed"]:
            raise access_denied(caller.arn, action, resource)

    def buckets(self) -> list[str]:
        """Return the names of all buckets."""
        return [bucket["Name"] for bucket in self._s3.list_buckets()["Buckets"]]

    def role_policies(self, role: str) -> Iterator[str]:
        """Return the documents of a role's inline and attached policies."""
        for name in self._iam.list_role_policies(RoleName=role)["PolicyNames"]:
            yield _document(self._iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])
        for attached in self._iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
            yield self.managed_policy(attached["PolicyArn"])

    def managed_policy(self, arn: str) -> str:
        """Return the document of a managed policy's default version."""
        version = self._iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        policy = self._iam.get_policy_version(PolicyArn=arn, VersionId=version)
        return _document(policy["PolicyVersion"]["Document"])


def _document(document: str | Mapping[str, Any]) -> str:
    return document if isinstance(document, str) else json.dumps(document)
