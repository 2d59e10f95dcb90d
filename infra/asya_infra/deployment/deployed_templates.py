"""Reads the templates of deployed stacks."""

import json
from collections.abc import Iterable
from typing import Any

from botocore.exceptions import ClientError

from asya_infra.assembly import Template


def deployed_templates(session: Any, stacks: Iterable[str]) -> dict[str, Template]:
    """Return the templates of those of the stacks that are deployed.

    Args:
        session: a boto3 session in the account and region of the mesh.
        stacks: the names of the stacks.
    """
    cloudformation = session.client("cloudformation")
    templates: dict[str, Template] = {}
    for stack in stacks:
        try:
            body: Any = cloudformation.get_template(StackName=stack, TemplateStage="Original")["TemplateBody"]
        except ClientError as error:
            if "does not exist" not in error.response["Error"]["Message"]:
                raise
            continue
        templates[stack] = json.loads(body) if isinstance(body, str) else dict(body)
    return templates
