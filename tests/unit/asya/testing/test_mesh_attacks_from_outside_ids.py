"""A queue sender tries ids of others, ids that are keys of tables, and odd ones (`protocol §1.id`)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from asya.protocol import ids
from tests.doubles.attacked_from_outside import Bank, check, message, new_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return new_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def before(bank: Bank) -> dict[str, Any]:
    return bank.of_alice()


def as_an_id_of_others(bank: Bank) -> Iterator[str]:
    for other in bank.ids:
        for own_id in (
            other,
            other.upper(),
            f"{other}-1",
            ids.child_id(other, 0, 1, 1),
            ids.hook_id(other, 0, "audit"),
        ):
            yield message(own_id, payload="forged")


def as_a_key_of_a_table(_: Bank) -> Iterator[str]:
    """IAM refuses x-sink the claim on such an end, and the envelope would lie on its queue as in an outage."""
    for key in (
        "KEY#",
        "KEY#work",
        "ROLE#AROAWORK",
        "ROLE#complete",
        "LETTER#a",
        "START#x-sink#1",
        "DLQ#1",
        "OUTAGE",
        "SWEEP",
    ):
        yield message(key)


def as_an_odd_id(_: Bank) -> Iterator[str]:
    """An id is hostile as a name, as a file, as a part of an address, and as a line of a log or a terminal."""
    odd = (
        "..",
        ".",
        "/",
        "../alice-set",
        "alice-set/",
        "a\nb",
        "\x00",
        "\x1b[2J",
        "%2e%2e",
        "'; rm -rf ~; '",
        "=1+1",
        "\ufffe",
    )
    for own_id in (*odd, "é" * 128, "\U0001f600" * 64, " alice-set", "alice-set ", "ALICE-SET", "alice-set\u200b"):
        yield message(own_id, then=["split", "x-fan-in"], payload={"items": [1]})
        yield message(own_id, then=["nap"], payload={"until": 0})


MESSAGES: dict[str, Callable[[Bank], Iterable[str]]] = {
    "ids of others, and what derives from them": as_an_id_of_others,
    "keys of tables as ids": as_a_key_of_a_table,
    "odd ids": as_an_odd_id,
}


@pytest.mark.rule("4.entry", "1.id.special")
@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.slow
def test_a_message_changes_nothing_of_others(bank: Bank, before: dict[str, Any], name: str) -> None:
    check(bank, before, name, MESSAGES[name](bank))
