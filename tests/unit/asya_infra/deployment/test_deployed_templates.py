"""The templates of deployed stacks."""

import pytest
from botocore.exceptions import ClientError

from asya_infra.deployment.deployed_templates import deployed_templates
from tests.unit.asya_infra.deployment.stubs import StubbedSession


def test_a_stack_that_does_not_exist_has_none() -> None:
    session = StubbedSession()
    body = {"TemplateBody": '{"Resources": {}}'}
    session.answer("cloudformation", "get_template", body, StackName="a", TemplateStage="Original")
    session.refuse("cloudformation", "get_template", "ValidationError", "Stack with id b does not exist")
    assert deployed_templates(session, ["a", "b"]) == {"a": {"Resources": {}}}


def test_a_call_that_is_denied_is_an_error() -> None:
    session = StubbedSession()
    session.refuse("cloudformation", "get_template", "AccessDenied", "not authorized")
    with pytest.raises(ClientError):
        deployed_templates(session, ["a"])
