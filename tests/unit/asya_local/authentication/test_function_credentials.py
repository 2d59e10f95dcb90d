"""The credentials of functions are random, and the same for all processes of a function."""

from types import ModuleType
from typing import Any

from asya_local.authentication.function_credentials import install

ROLE = "arn:aws:iam::000000000000:role/path/asya-shop-bill"
FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:asya-shop-bill"


def credentials_of_a_cloud() -> tuple[Any, dict[str, Any]]:
    sessions: dict[str, Any] = {}
    runtime, service, sts = ModuleType("runtime"), ModuleType("service"), ModuleType("sts")
    sts.register_session = sessions.__setitem__  # type: ignore[attr-defined]
    install(runtime, service, sts)
    assert runtime.execution_credentials == service.execution_credentials
    return runtime.execution_credentials, sessions


def test_a_function_has_one_session_of_its_role() -> None:
    credentials, sessions = credentials_of_a_cloud()
    first = credentials({"FunctionArn": FUNCTION, "Role": ROLE})
    assert credentials({"FunctionArn": f"{FUNCTION}", "Role": ROLE}) == first
    assert sessions == {
        first["AWS_ACCESS_KEY_ID"]: {
            "Arn": "arn:aws:sts::000000000000:assumed-role/asya-shop-bill/asya-shop-bill",
            "UserId": "asya-shop-bill:asya-shop-bill",
            "SecretAccessKey": first["AWS_SECRET_ACCESS_KEY"],
            "SessionToken": first["AWS_SESSION_TOKEN"],
        }
    }


def test_each_function_role_and_cloud_has_other_credentials() -> None:
    credentials, _ = credentials_of_a_cloud()
    others, _ = credentials_of_a_cloud()
    found = [
        credentials({"FunctionArn": FUNCTION, "Role": ROLE}),
        credentials({"FunctionArn": f"{FUNCTION}s", "Role": ROLE}),
        credentials({"FunctionArn": FUNCTION, "Role": f"{ROLE}s"}),
        others({"FunctionArn": FUNCTION, "Role": ROLE}),
    ]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        assert len({environment[name] for environment in found}) == len(found)
