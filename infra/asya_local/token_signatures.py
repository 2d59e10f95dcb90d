"""Whether a token (JWT) is signed with an issuer's key, RS256: RFC 7515, and RFC 8017 §8.2.2.

Runs in the local cloud's own virtual environment too, which is kept bare because its workers see all that is in it: MiniStack
would take a library for this that is not there. Verifying needs no secret, so nothing here has to be quick or even in time.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any

# What stands before a SHA-256 digest in a signature (RFC 8017 §9.2, note 1).
_DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
_PARTS = 3
_LEAST_BITS = 2048


def is_signed(token: str, key: Mapping[str, Any]) -> bool:
    """Whether this key of an issuer's list has signed the token, and the token says when it expires, as API Gateway wants it."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        return False
    try:
        header, claims = (json.loads(_decoded(part)) for part in parts[:2])
        modulus, exponent = (int.from_bytes(_decoded(key[name]), "big") for name in ("n", "e"))
        signature = _decoded(parts[2])
    except (ValueError, KeyError, TypeError, binascii.Error):
        return False
    if not (isinstance(header, dict) and isinstance(claims, dict)):
        return False
    if header.get("alg") != "RS256" or modulus.bit_length() < _LEAST_BITS or "exp" not in claims:
        return False
    size = (modulus.bit_length() + 7) // 8
    number = int.from_bytes(signature, "big")
    if len(signature) != size or number >= modulus:
        return False
    digest = _DIGEST_INFO + hashlib.sha256(f"{parts[0]}.{parts[1]}".encode()).digest()
    expected = b"\x00\x01" + b"\xff" * (size - 3 - len(digest)) + b"\x00" + digest
    return pow(number, exponent, modulus).to_bytes(size, "big") == expected


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
