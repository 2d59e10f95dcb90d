"""The local cloud looks at tokens as strictly as API Gateway does."""

import base64
import json
from typing import Any

import jwt
import pytest

from asya_local.token_signatures import is_signed
from tests.doubles.issuer import Issuer, new_key, published

KEY, OTHER = new_key(), new_key()
ISSUER = Issuer("http://127.0.0.1:1", "us", KEY)


def encoded(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def test_a_token_that_the_issuer_signed() -> None:
    token = ISSUER.token("alice")
    assert is_signed(token, published(KEY))
    assert jwt.decode(token, KEY.public_key(), algorithms=["RS256"], audience="us")["sub"] == "alice"


@pytest.mark.rule("13.jwt")
def test_a_token_that_somebody_else_signed_or_changed() -> None:
    token = ISSUER.token("alice")
    head, claims, signature = token.split(".")
    forged = [
        ISSUER.token("alice", key=OTHER),
        ".".join((head, encoded({"sub": "bob", "exp": 2**31}), signature)),
        ".".join((head, claims, signature[:-4])),
        ".".join((head, claims, "A" * len(signature))),
        ".".join((head, claims, "_" * len(signature))),
        ".".join((head, claims, "")),
        ".".join((head, claims)),
        f"{token}.more",
        ".".join((encoded([]), encoded([]), signature)),
        "",
    ]
    assert [is_signed(each, published(KEY)) for each in forged] == [False] * len(forged)
    assert not is_signed(token, published(OTHER))


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS512"])
def test_of_another_algorithm(algorithm: str) -> None:
    key: Any = {"none": None, "HS256": "secret" * 8, "RS512": KEY}[algorithm]
    assert not is_signed(jwt.encode({"sub": "alice", "exp": 2**31}, key, algorithm=algorithm), published(KEY))


def test_without_an_end() -> None:
    token = jwt.encode({"sub": "alice"}, KEY, algorithm="RS256")
    assert not is_signed(token, published(KEY))


@pytest.mark.parametrize(
    "key", [{}, {"n": 1, "e": 2}, {"n": "", "e": ""}, {"n": "AQAB", "e": "AQAB"}, {"n": "!", "e": "AQAB"}]
)
def test_keys_that_are_none(key: dict[str, object]) -> None:
    assert not is_signed(ISSUER.token("alice"), key)
