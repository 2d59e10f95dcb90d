"""The keys in the text of a secret."""

import pytest

from asya.capabilities.triggers.webhooks import UnusableSecretError, read_keys
from asya.testing.webhooks import kit_secret

OLD, NEW = "an-old-key-1234567", "a-new-key-12345678"


@pytest.mark.rule("16.webhooks.keys")
def test_16_each_line_of_a_secret_is_a_key() -> None:
    assert read_keys(f"{OLD}\n", "github") == (OLD.encode(),)
    assert read_keys(f"  {NEW} \r\n\n{OLD}", "slack") == (NEW.encode(), OLD.encode())
    assert read_keys("schlüssel-mit-umlaut", "hmac-sha256") == ("schlüssel-mit-umlaut".encode(),)


@pytest.mark.rule("16.webhooks.keys")
def test_16_keys_of_standard_webhooks_are_base64_and_those_of_stripe_are_not() -> None:
    """Both begin with `whsec_`."""
    secret = kit_secret("hooks/a")
    assert read_keys(secret, "standard-webhooks") == (b"a key of the test kit: hooks/a",)
    assert read_keys(secret.removeprefix("whsec_"), "standard-webhooks") == (b"a key of the test kit: hooks/a",)
    assert read_keys(secret, "stripe") == (secret.encode(),)


@pytest.mark.rule("16.webhooks.keys")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "0 lines"),
        (" \n\n", "0 lines"),
        ("\n".join(f"a-key-of-some-length-{number}" for number in range(6)), "6 lines"),
        ('{"key": "a-key-of-some-length"}', "JSON"),
        ("too-short", "16 bytes"),
        (f"{NEW}\nshort", "16 bytes"),
    ],
)
def test_16_a_text_without_usable_keys_is_refused(text: str, problem: str) -> None:
    """An empty key would let everybody sign. The message never has the text."""
    with pytest.raises(UnusableSecretError, match=problem) as caught:
        read_keys(text, "github")
    assert not text.strip() or text not in str(caught.value)


@pytest.mark.rule("16.webhooks.keys")
@pytest.mark.parametrize("text", ["whsec_", "whsec_no base64!", "whsec_c2hvcnQ=", "é" * 20])
def test_16_a_key_of_standard_webhooks_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UnusableSecretError):
        read_keys(text, "standard-webhooks")
