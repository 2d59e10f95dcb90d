"""Renders values of a template with the longest text that a deployment can fill in.

A policy is limited by its length in an account, not in the template: `{"Ref": "AWS::Region"}` becomes `us-gov-west-1`.
"""

import json
import re
from typing import Any

# The longest values of pseudo parameters: `aws-us-gov`, the longest region, `amazonaws.com.cn`.
_PSEUDO = {
    "AWS::Partition": "p" * 10,
    "AWS::Region": "r" * 15,
    "AWS::AccountId": "1" * 12,
    "AWS::URLSuffix": "u" * 16,
    "AWS::StackName": "s" * 64,
}
# References to resources and imports are ids, names and ARNs; most are far shorter.
_REFERENCE = "x" * 40
_PLACEHOLDER = re.compile(r"\$\{([^}!]+)\}")
_TOKEN = re.compile(r"\$\{Token\[([A-Za-z.]+?)(?:\.\d+)?\]\}")


def render(value: Any) -> Any:
    """Return a value of a template with text in place of its intrinsic functions."""
    if isinstance(value, dict):
        if len(value) == 1:
            ((name, argument),) = value.items()
            text = _intrinsic(name, argument)
            if text is not None:
                return text
        return {key: render(item) for key, item in value.items()}
    return [render(item) for item in value] if isinstance(value, list) else value


def policy_length(document: Any) -> int:
    """Return the characters of a policy as IAM counts them: without white space, pseudo parameters at their longest.

    Args:
        document: a policy of a template, or one with tokens of the CDK.
    """
    text = json.dumps(render(document), separators=(",", ":"), default=str)
    return len(_TOKEN.sub(lambda token: _PSEUDO.get(token[1].replace(".", "::", 1), _REFERENCE), text))


def _intrinsic(name: str, argument: Any) -> str | None:
    """Render an intrinsic function; None if it is none, or one without a text."""
    if name == "Ref":
        return _PSEUDO.get(argument, _REFERENCE)
    if name in {"Fn::GetAtt", "Fn::ImportValue"}:
        return _REFERENCE
    if name == "Fn::Join":
        return str(argument[0]).join(str(render(part)) for part in argument[1])
    if name == "Fn::Sub" and isinstance(argument, str):
        return _PLACEHOLDER.sub(lambda match: _PSEUDO.get(match[1], _REFERENCE), argument)
    return None
