"""protocol §6: the values of secrets in texts."""

import json

import pytest

from asya.runtime.secret_values import redact

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
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("…-93ab62d4 was refused", "…[secret KEY] was refused"),
        ("the key vault-key-93a…", "the key [secret KEY]…"),
        ("…62d4", "…[secret KEY]"),
        ("…2d4 is no key", "…2d4 is no key"),  # three characters tell nothing
        ("… vault-key-93ab62d4 …", "… [secret KEY] …"),
        ("…", "…"),
    ],
)
def test_6_the_rest_of_a_value_at_a_cut_is_replaced(text: str, redacted: str) -> None:
    """A long message or traceback is cut before it is redacted."""
    assert redact(text, {"KEY": {"vault-key-93ab62d4"}}) == redacted


def test_6_a_cut_text_without_secrets_stays() -> None:
    assert redact("…abc…", {}) == "…abc…"
