"""protocol §2, §6: how an error is described; §4: how much of it."""

import json

import pytest

from asya.protocol.errors import MESSAGE_LIMIT, TRACEBACK_LIMIT, describe_exception


class OwnError(LookupError, ConnectionError):
    """Has two lines of ancestors."""


class Unprintable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no text")


def described(error: BaseException) -> tuple[str, tuple[str, ...]]:
    found = describe_exception(error)
    return found.type, found.mro


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
    found = describe_exception(caught.value)
    assert len(found.message.encode()) <= MESSAGE_LIMIT
    assert found.message.startswith("start ")
    assert len(found.traceback.encode()) <= TRACEBACK_LIMIT
    assert found.traceback.endswith(" end\n")


def test_a_short_traceback_is_whole() -> None:
    with pytest.raises(KeyError) as caught:
        dict[str, int]()["missing"]
    found = describe_exception(caught.value)
    assert found.traceback.startswith("Traceback (most recent call last)")
    assert "KeyError: 'missing'" in found.traceback
    assert describe_exception(caught.value, with_traceback=False).traceback == ""
