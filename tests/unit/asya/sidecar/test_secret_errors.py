"""protocol §6: the values of secrets in the errors of user code."""

import pytest

from asya.protocol.errors import ErrorInfo
from asya.sidecar.secret_errors import redact_error

KEY = "sk-4f9c81d2"


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
