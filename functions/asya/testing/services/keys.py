"""KMS: message authentication codes of a key that never leaves it."""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from asya.testing.services.process import Process

_KEY = b"the key of the simulated mesh"


@dataclass
class KmsClient:
    """The KMS client of one process."""

    process: Process

    def generate_mac(self, *, KeyId: str, MacAlgorithm: str, Message: bytes) -> dict[str, Any]:  # noqa: N803
        """Compute the code of a message."""
        return self.process.call(
            "kms",
            "GenerateMac",
            lambda: {"Mac": hmac.digest(_KEY, Message, hashlib.sha256)},
            refusal=lambda: ClientError({"Error": {"Code": "ThrottlingException", "Message": "simulated"}}, "KMS"),
            lost_response=lambda: ReadTimeoutError(endpoint_url="https://kms"),
        )
