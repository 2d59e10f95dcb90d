"""Calls the gateway as a principal whose policy allows two paths: `python -m tests.real_account.paths NAMESPACE`.

`scripts/real-account-smoke` runs it on AWS. The local cloud has the same checks in `tests/cloud/test_gateway_paths.py`.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import boto3
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from asya.protocol import names

ALLOWED_PATHS = ("GET/api/v1/mesh", "GET/api/v1/mesh/*/children")
ALLOWED = {"/api/v1/mesh": 200, "/api/v1/mesh/no-task/children": 404}
"""What the function answers to the calls that the policy allows."""
REFUSED = (
    ("GET", "/api/v1/mesh/no-task"),
    ("GET", "/api/v1/mesh/no-task/timeline"),
    ("GET", "/api/v1/mesh/no-task/events"),
    ("POST", "/api/v1/mesh"),
    ("POST", "/api/v1/mesh/events"),
    ("DELETE", "/api/v1/mesh/no-task"),
    ("GET", "/openapi.json"),
    ("GET", "/api/v1/operations/mesh"),
    ("GET", "/api/v1/nothing"),
)
"""What the policy does not allow, at doors of each kind. API Gateway answers 403."""
HOSTILE = (
    *("/api/v1/mesh/no-task%3F/children", "/api/v1/mesh/no-task%23/children", "/api/v1/mesh//children"),
    *("/api/v1/mesh/no-task%2Ftimeline%3F/children", "/api/v1/mesh/%2E%2E%2Foperations%2Fmesh%3F/children"),
    *("/api/v1/mesh%2Fno-task", "/api/v1/mesh%3F/children", "/%6Fpenapi.json", "/api/v1/%6Desh/no-task"),
)
"""Spellings that the policy matches or other calls have. Nobody may answer them but with a refusal."""
_PATIENCE = 90.0  # seconds until IAM knows a new role everywhere

Ask = Callable[[str, str], tuple[int, Any]]
"""Makes a call with a method and a path; returns its status, and the JSON of the answer."""


def policy(api: str) -> dict[str, Any]:
    """Return the policy of the principal.

    Args:
        api: the ARN of the API with its stage.
    """
    resources = [f"{api}/{path}" for path in ALLOWED_PATHS]
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": resources}],
    }


def problems(ask: Ask) -> Iterator[str]:
    """Yield what is not as the gateway promises (`protocol §13.doors.paths`)."""
    for path, expected in ALLOWED.items():
        if (status := ask("GET", path)[0]) != expected:
            yield f"GET {path}: {status}, not {expected}"
    for method, path in REFUSED:
        status, answer = ask(method, path)
        if status != 403 or "error" in answer:
            yield f"{method} {path}: {status} {answer}, and the policy does not allow it"
    for path in HOSTILE:
        status, answer = ask("GET", path)
        is_task = status == 404 and answer.get("error", {}).get("field") == "id"
        if status not in (400, 403, 404) or (is_task and not path.endswith("/children")):
            yield f"GET {path}: {status} {answer}, and the policy allows no such call"


def signed_calls(
    url: str, region: str, credentials: Credentials, address: Callable[[str], str] = lambda url: url
) -> Ask:
    """Return what makes signed calls. A path goes out as it is written.

    Args:
        address: gives the address that a URL leads to.
    """
    pool = urllib3.PoolManager(retries=False)

    def ask(method: str, path: str) -> tuple[int, Any]:
        request = AWSRequest(method, f"{url}{path}", headers={"host": urlsplit(url).netloc})
        SigV4Auth(credentials, "execute-api", region).add_auth(request)
        response = pool.request(method, address(f"{url}{path}"), headers=dict(request.headers.items()), timeout=30.0)
        return response.status, json.loads(response.data)

    return ask


@contextmanager
def _role(session: boto3.Session, name: str, api: str) -> Iterator[Credentials]:
    """Make a role that may call the paths, and delete it in the end."""
    iam, sts = session.client("iam"), session.client("sts")
    account = sts.get_caller_identity()["Account"]
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": account}}
    arn = iam.create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )["Role"]["Arn"]
    try:
        iam.put_role_policy(RoleName=name, PolicyName="paths", PolicyDocument=json.dumps(policy(api)))
        yield _assumed(sts, arn)
    finally:
        iam.delete_role_policy(RoleName=name, PolicyName="paths")
        iam.delete_role(RoleName=name)


def _assumed(sts: Any, arn: str) -> Credentials:
    ends_at = time.monotonic() + _PATIENCE
    while True:
        try:
            found = sts.assume_role(RoleArn=arn, RoleSessionName="paths")["Credentials"]
            return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])
        except ClientError:
            if time.monotonic() > ends_at:
                raise
            time.sleep(5)


def main(namespace: str) -> int:
    """Check the mesh of this namespace; return the exit code."""
    session = boto3.Session()
    stack = names.stack_name(namespace, "gateway")
    [found] = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}
    account, partition = found["StackId"].split(":")[4], found["StackId"].split(":")[1]
    api = f"arn:{partition}:execute-api:{session.region_name}:{account}:{outputs['GatewayApiId']}/$default"
    with _role(session, names.resource_name(namespace, "some-paths"), api) as credentials:
        ask = signed_calls(outputs["GatewayUrl"], session.region_name, credentials)
        ends_at = time.monotonic() + _PATIENCE
        while ask("GET", "/api/v1/mesh")[0] == 403 and time.monotonic() < ends_at:
            time.sleep(5)
        wrong = list(problems(ask))
    print("\n".join(wrong) or "every call was answered as its policy says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
