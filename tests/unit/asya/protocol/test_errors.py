"""protocol §2, §6: the description of errors; §4: its size limits."""

import json

import pytest

from asya.protocol.errors import MESSAGE_LIMIT, TRACEBACK_LIMIT, describe_exception


class OwnError(LookupError, ConnectionError):
    """An exception with two lines of ancestors."""


class Unprintable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no text")


def described(error: BaseException) -> tuple[str, tuple[str, ...]]:
    info = describe_exception(error)
    return info.type, info.mro


@pytest.mark.rule("6.error-names")
def test_types_are_module_qualified_but_builtins() -> None:
    assert described(ValueError("x")) == ("ValueError", ("Exception",))
    assert described(ConnectionResetError()) == ("ConnectionResetError", ("ConnectionError", "OSError", "Exception"))
    assert described(json.JSONDecodeError("x", "", 0)) == ("json.decoder.JSONDecodeError", ("ValueError", "Exception"))
    assert described(SystemExit(1)) == ("SystemExit", ())
    assert described(OwnError()) == (
        f"{__name__}.OwnError",
        ("LookupError", "ConnectionError", "OSError", "Exception"),
    )


def test_a_message_that_cannot_be_read_is_replaced() -> None:
    assert describe_exception(Unprintable()).message == "<Unprintable; its text could not be read: RuntimeError>"


@pytest.mark.rule("4.tracebacks")
@pytest.mark.parametrize("piece", ["x", "ü", "𝄞", "\ud800"])
def test_messages_and_tracebacks_are_cut_at_16_kib(piece: str) -> None:
    def fail() -> None:
        raise ValueError("start " + piece * 100_000 + " end")

    with pytest.raises(ValueError, match="start") as caught:
        fail()
    info = describe_exception(caught.value)
    assert len(info.message.encode()) <= MESSAGE_LIMIT
    assert info.message.startswith("start ")
    assert len(info.traceback.encode()) <= TRACEBACK_LIMIT
    assert info.traceback.endswith(" end\n")


def test_a_short_traceback_is_whole() -> None:
    with pytest.raises(KeyError) as caught:
        dict[str, int]()["missing"]
    info = describe_exception(caught.value)
    assert info.traceback.startswith("Traceback (most recent call last)")
    assert "KeyError: 'missing'" in info.traceback
    assert describe_exception(caught.value, with_traceback=False).traceback == ""
