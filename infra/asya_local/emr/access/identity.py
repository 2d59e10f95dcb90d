"""Authenticates and authorizes callers with MiniStack's IAM.

The stand-in has no secret keys except root's, so MiniStack checks the signatures. The stand-in sends the caller's request to
MiniStack again, with an additional unsigned header that names an unknown operation. MiniStack checks the signature and the
session token. It refuses the operation with the caller's ARN in the message. To a caller who may do everything it answers that
the operation does not exist.
"""

from __future__ import annotations

import http.client
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from asya_local.emr.access.policies import resolve_passed_service
from asya_local.emr.clients import client
from asya_local.emr.errors import ServiceError, access_denied

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from asya_local.emr.settings import EmrSettings

_PROBE = "AWSOrganizationsV20161128.NameTheCaller"
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/[^/]+/([^/]+)/aws4_request")
_CALLER_ARN = re.compile(r"User: (arn:\S+) is not authorized to perform: organizations:NameTheCaller")
_DROPPED_HEADERS = frozenset({"connection", "content-length", "transfer-encoding", "x-amz-target"})


@dataclass(frozen=True)
class Principal:
    """The principal that signed a request."""

    arn: str
    unrestricted: bool = False
    """True for root, and for a session that MiniStack allows everything."""


@dataclass(frozen=True)
class SignedRequest:
    """A request as received."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class IamClient:
    """The principals and policies of MiniStack's IAM."""

    def __init__(self, settings: EmrSettings, root_access_key: str) -> None:
        self._settings = settings
        self._root = root_access_key
        self._iam: Any = client("iam", settings)
        self._s3: Any = client("s3", settings)

    def authenticate(self, request: SignedRequest) -> Principal:
        """Return the principal that signed a request.

        Raises:
            ServiceError: The request is not signed, is signed for another service, or has an invalid signature, key or token.
        """
        root = Principal(f"arn:aws:iam::{self._settings.account_id}:root", unrestricted=True)
        match = _CREDENTIAL.search(request.headers.get("Authorization", ""))
        if not self._settings.auth:
            return root
        if match is None:
            raise ServiceError("MissingAuthenticationTokenException", "Missing Authentication Token", 403)
        access_key, service = match.groups()
        if service != "emr-serverless":
            message = "Credential should be scoped to correct service: 'emr-serverless'."
            raise ServiceError("InvalidSignatureException", message, 403)
        answer = self._replay_to_ministack(request)
        caller = _CALLER_ARN.search(answer.get("message", ""))
        if caller:
            return Principal(caller[1])
        if answer.get("__type") != "InvalidAction":
            raise ServiceError(
                answer.get("__type", "AccessDeniedException"), answer.get("message", "Access denied"), 403
            )
        return root if access_key == self._root else self._administrator(access_key)

    def _replay_to_ministack(self, request: SignedRequest) -> dict[str, str]:
        address = urlsplit(self._settings.aws_endpoint)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _DROPPED_HEADERS}
        try:
            connection.request(
                request.method, request.target, body=request.body or None, headers={**headers, "X-Amz-Target": _PROBE}
            )
            body = connection.getresponse().read()
        finally:
            connection.close()
        try:
            answer = json.loads(body)
        except ValueError:
            raise ServiceError(
                "InternalServerException", f"MiniStack answered {body[:200]!r}, which is not JSON", 500
            ) from None
        return {str(key): str(value) for key, value in answer.items()}

    def _administrator(self, access_key: str) -> Principal:
        """Return a principal with `organizations:*`: the user of the key, or else an administrator's session."""
        try:
            user = self._iam.get_access_key_last_used(AccessKeyId=access_key)["UserName"]
            return Principal(self._iam.get_user(UserName=user)["User"]["Arn"])
        except (ClientError, KeyError):
            account = self._settings.account_id
            return Principal(f"arn:aws:sts::{account}:assumed-role/administrator/session", unrestricted=True)

    def authorize(self, caller: Principal, action: str, resource: str) -> None:
        """Check that the caller's policies allow the action on the resource.

        Raises:
            ServiceError: AccessDeniedException, with the message of IAM.
        """
        if caller.unrestricted or not self._settings.auth:
            return
        documents = [resolve_passed_service(document) for document in self._policies(caller.arn)]
        if documents:
            answer = self._iam.simulate_custom_policy(
                PolicyInputList=documents, ActionNames=[action], ResourceArns=[resource]
            )
            if all(result["EvalDecision"] == "allowed" for result in answer["EvaluationResults"]):
                return
        raise access_denied(caller.arn, action, resource)

    def buckets(self) -> list[str]:
        """Return the names of all buckets."""
        return [bucket["Name"] for bucket in self._s3.list_buckets()["Buckets"]]

    def _policies(self, arn: str) -> Iterator[str]:
        kind, _, path = arn.split(":", 5)[5].partition("/")
        if kind == "assumed-role":
            yield from self.role_policies(path.split("/")[0])
        elif kind == "user":
            name = path.rsplit("/", 1)[-1]
            yield from self._user_policies(name)

    def role_policies(self, role: str) -> Iterator[str]:
        """Return the documents of a role's inline and attached policies."""
        for name in self._iam.list_role_policies(RoleName=role)["PolicyNames"]:
            yield _document(self._iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])
        for attached in self._iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
            yield self.managed_policy(attached["PolicyArn"])

    def _user_policies(self, user: str) -> Iterator[str]:
        for name in self._iam.list_user_policies(UserName=user)["PolicyNames"]:
            yield _document(self._iam.get_user_policy(UserName=user, PolicyName=name)["PolicyDocument"])
        for attached in self._iam.list_attached_user_policies(UserName=user)["AttachedPolicies"]:
            yield self.managed_policy(attached["PolicyArn"])
        for group in self._iam.list_groups_for_user(UserName=user)["Groups"]:
            name = group["GroupName"]
            for policy in self._iam.list_group_policies(GroupName=name)["PolicyNames"]:
                yield _document(self._iam.get_group_policy(GroupName=name, PolicyName=policy)["PolicyDocument"])
            for attached in self._iam.list_attached_group_policies(GroupName=name)["AttachedPolicies"]:
                yield self.managed_policy(attached["PolicyArn"])

    def managed_policy(self, arn: str) -> str:
        """Return the document of a managed policy's default version."""
        version = self._iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        policy = self._iam.get_policy_version(PolicyArn=arn, VersionId=version)
        return _document(policy["PolicyVersion"]["Document"])


def _document(document: str | Mapping[str, Any]) -> str:
    return document if isinstance(document, str) else json.dumps(document)
