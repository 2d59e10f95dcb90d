"""Reads the templates of deployed stacks."""

import json
from typing import Any

from botocore.exceptions import ClientError

from asya_infra.assembly import Template


def deployed_template(cloudformation: Any, stack: str) -> Template | None:
    """Return the template of a deployed stack; None if the stack does not exist.

    Args:
        cloudformation: a boto3 client in the account and region of the mesh.
        stack: the name of the stack.
    """
    try:
        body: Any = cloudformation.get_template(StackName=stack, TemplateStage="Original")["TemplateBody"]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    return json.loads(body) if isinstance(body, str) else dict(body)
