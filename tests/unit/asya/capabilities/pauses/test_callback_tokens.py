"""protocol §11: the tokens of callbacks."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.pauses.callback_tokens import Callback, CallbackTokenError, key_label, read, sign, url_of
from asya.protocol.times import format_time

KEY = b"k" * 32
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CALLBACK = Callback("order-7", 0, 1, format_time(NOW + timedelta(days=29)))
TOKEN = sign(KEY, CALLBACK)


@pytest.mark.rule("11.callback.token")
def test_a_token_names_its_pause() -> None:
    assert read(KEY, TOKEN, NOW) == CALLBACK
    assert sign(KEY, CALLBACK) == TOKEN
    assert url_of("https://api.example/prod", TOKEN) == f"https://api.example/prod/callbacks?token={TOKEN}"


@given(st.text(min_size=1, max_size=60), st.integers(0, 9_999), st.integers(0, 999_999))
@pytest.mark.slow
def test_any_id_survives(task_id: str, generation: int, epoch: int) -> None:
    callback = Callback(task_id, generation, epoch, CALLBACK.expires_at)
    assert read(KEY, sign(KEY, callback), NOW) == callback


@pytest.mark.rule("11.callback.token")
def test_it_expires() -> None:
    with pytest.raises(CallbackTokenError, match="expired"):
        read(KEY, TOKEN, NOW + timedelta(days=29))
    assert read(KEY, TOKEN, NOW + timedelta(days=28.9)) == CALLBACK


@pytest.mark.rule("11.callback.token")
@pytest.mark.parametrize(
    "token", ["", "x", "a.b", TOKEN[:-1], TOKEN + "A", "é" * 50, f"{'A' * 700}.{'A' * 43}", "=.=", TOKEN * 2]
)
def test_a_malformed_token_opens_nothing(token: str) -> None:
    with pytest.raises(CallbackTokenError):
        read(KEY, token, NOW)


@pytest.mark.rule("11.callback.token")
def test_each_changed_character_breaks_it() -> None:
    for index, character in enumerate(TOKEN):
        other = "A" if character != "A" else "B"
        with pytest.raises(CallbackTokenError):
            read(KEY, f"{TOKEN[:index]}{other}{TOKEN[index + 1 :]}", NOW)


@pytest.mark.rule("11.callback.token")
def test_another_key_has_other_tokens() -> None:
    with pytest.raises(CallbackTokenError, match="not of this mesh"):
        read(b"x" * 32, TOKEN, NOW)
    assert key_label("shop") != key_label("shop-test")
