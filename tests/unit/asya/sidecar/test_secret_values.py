"""protocol §6: the values of secrets in the errors of user code."""

import json

import pytest

from asya.protocol.errors import ErrorInfo
from asya.sidecar.secret_values import redact, redact_error

KEY = "sk-4f9c81d2"


@pytest.mark.parametrize(
    ("value", "text", "redacted"),
    [
        (KEY, f"401 for key {KEY}!", "401 for key [secret KEY]!"),
        (KEY, f"{KEY} {KEY}", "[secret KEY] [secret KEY]"),
        (f"{KEY}\n", f"Bearer {KEY}", "Bearer [secret KEY]"),
        ("two\nlines", "header 'two\\nlines'", "header '[secret KEY]'"),
        ('quo"ted-key', 'in {"k": "quo\\"ted-key"}', 'in {"k": "[secret KEY]"}'),
        (json.dumps({"user": "admin", "password": KEY}), f"login with {KEY} failed", "login with [secret KEY] failed"),
        (json.dumps([{"token": KEY}]), KEY, "[secret KEY]"),
        ("ab", "a cab", "a cab"),
        ("", "nothing", "nothing"),
    ],
)
@pytest.mark.rule("6.secrets.redacted")
def test_6_values_are_replaced(value: str, text: str, redacted: str) -> None:
    assert redact(text, {"KEY": {value}}) == redacted


@pytest.mark.rule("6.secrets.redacted")
def test_6_earlier_values_are_replaced_too() -> None:
    assert redact(f"{KEY}, then sk-second", {"KEY": {"sk-second", KEY}}) == "[secret KEY], then [secret KEY]"


def test_6_the_longest_value_is_replaced_first() -> None:
    assert redact(f"{KEY}-extended", {"SHORT": {KEY}, "LONG": {f"{KEY}-extended"}}) == "[secret LONG]"


@pytest.mark.rule("6.secrets.redacted")
def test_6_message_and_traceback_are_redacted() -> None:
    error = ErrorInfo(
        type="ValueError", message=f"bad {KEY}", traceback=f"x\nValueError: bad {KEY}\n", mro=("Exception",)
    )
    assert redact_error(error, {"KEY": {KEY}}) == ErrorInfo(
        type="ValueError",
        message="bad [secret KEY]",
        traceback="x\nValueError: bad [secret KEY]\n",
        mro=("Exception",),
    )
