"""Refuses objects whose key the caller may not use, as S3 on AWS does. MiniStack encrypts nothing and asks for no key.

The bucket of `cdk bootstrap` is always encrypted by KMS with the key `aws/s3`, and MiniStack's CloudFormation leaves that out. For
another bucket its own default counts. The key `aws/s3` lets every principal of the account use it through S3: session policies and
permissions boundaries must name the action all the same.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

_BOOTSTRAP = "cdk-*-assets-*"
_AWS_KEY = "key/aws-s3"
_OBJECT = re.compile(r"arn:[^:]+:s3:::([^/]+)/.+", re.DOTALL)
_DEFAULT_KEY = re.compile(r"<KMSMasterKeyID>([^<]+)</KMSMasterKeyID>")
_USES = {"s3:GetObject": ("kms:Decrypt",), "s3:PutObject": ("kms:Decrypt", "kms:GenerateDataKey")}


@dataclass(frozen=True)
class ObjectCall:
    """A call of S3 that its own policies allow.

    Attributes:
        access_key: the access key of the caller.
        account, region: where it is made.
        action: the IAM action.
        arn: the ARN of the object, or of another resource.
    """

    access_key: str
    account: str
    region: str
    action: str
    arn: str


@dataclass(frozen=True)
class BucketKeys:
    """The keys of buckets, and who may use them.

    Attributes:
        evaluator: MiniStack's evaluation of policies.
        s3: MiniStack's S3.
        enforce: MiniStack's check of one call against all policies.
    """

    evaluator: ModuleType
    s3: ModuleType
    enforce: Callable[..., Any]

    def refused(self, call: ObjectCall) -> Any:
        """Return the refusal of a caller that may not use the key of an object; None if it may, or needs none."""
        found = _OBJECT.fullmatch(call.arn)
        key = self._key_of(found[1], call) if found is not None and call.action in _USES else None
        if key is None:
            return None
        context = {"kms:viaservice": f"s3.{call.region}.amazonaws.com", "kms:encryptioncontext:aws:s3:arn": call.arn}
        for use in _USES[call.action]:
            if key.endswith(_AWS_KEY):
                refusal = self._refused_by_limits(call, use, key, context)
            else:
                more = {"resource_arn": key, "service_context": context}
                refusal = self.enforce(call.access_key, use, "kms", call.region, **more)
            if refusal is not None:
                return refusal
        return None

    def _key_of(self, bucket: str, call: ObjectCall) -> str | None:
        """Return the ARN of the key that encrypts a bucket; None without KMS."""
        default = self.s3._bucket_encryption.get(bucket) or ""
        own_key = _DEFAULT_KEY.search(default)
        place = f"arn:aws:kms:{call.region}:{call.account}"
        if own_key is not None:
            name = own_key[1].strip()
            return name if name.startswith("arn:") else f"{place}:key/{name}"
        return f"{place}:{_AWS_KEY}" if "aws:kms" in default or fnmatchcase(bucket, _BOOTSTRAP) else None

    def _refused_by_limits(self, call: ObjectCall, use: str, key: str, context: dict[str, Any]) -> Any:
        principal = self.evaluator.resolve_principal(call.access_key, call.account)
        if isinstance(principal, self.evaluator.AuthError) or principal.policies is None:
            return None
        use_of_key = self.evaluator.EvalContext(
            principal_arn=principal.arn,
            principal_type=principal.type,
            principal_account=principal.account,
            action=use,
            resource_arn=key,
            region=call.region,
            service_context=context,
            principal_keys=principal.keys,
        )
        allowed = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
        identity = [self.evaluator.parse_policy_document(allowed)]
        result = self.evaluator.evaluate(use_of_key, identity, *principal.limits)
        return None if result.decision == "Allow" else result
