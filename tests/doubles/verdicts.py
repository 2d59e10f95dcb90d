"""What the published schema, the gateway and the actor say to a JSON value (`protocol §6.typed.schema`)."""

import dataclasses
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import jsonschema_rs
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from asya.contracts.errors import ContractError
from asya.contracts.function import Contract
from asya.protocol.numbers import with_decimals
from asya.protocol.strict_json import decode_exact, decode_untyped
from asya.tasks.starts.tool_schemas import validate

# --- JSON values, most of them near to some type

ID = "12345678-1234-4678-9234-567812345678"
SEEDS = [
    *(
        "",
        "a",
        "b",
        "x",
        "red",
        "RED",
        "5",
        "5.0",
        "-7",
        "05",
        "+5",
        " 5",
        "5 ",
        "1_0",
        "1e3",
        ".5",
        "5.",
        "NaN",
        "Infinity",
    ),
    *("-Infinity", "1e400", "1e9999999999", "٥", "true", "null", "12.30", "0x10"),
    *(
        "2026-02-28",
        "2026-02-29",
        "2028-02-29",
        "1900-02-29",
        "2000-02-29",
        "0000-01-01",
        "20261124",
        "2026-1-1",
        "2026-13-01",
    ),
    *("2026-04-31", "2026-11-24\n", "2026-W48-2", "26-11-24", "2026-11-24T00:00:00", "12026-11-24"),
    *("2026-02-29T00:00:00Z", "2026-11-24T08:30:00Z", "2026-11-24T08:30:00", "2026-11-24T08:30", "2026-11-24 08:30:00"),
    *("2026-11-24t08:30:00z", "2026-11-24T08:30:00+01:00", "2026-11-24T08:30:00+0100", "2026-11-24T08:30:00+01"),
    *("2016-12-31T23:59:60Z", "2026-11-24T24:00:00Z", "2026-11-24T08:30:00.123456789Z", "2026-11-24T08:30:00,5Z"),
    *(
        "2026-11-24T08:30:00+24:00",
        "2026-11-24T08:30:00-00:00",
        "2026-11-24_08:30:00",
        "1795508400",
        "0001-01-01T00:00:00+10:00",
    ),
    *("9999-12-31T23:59:59-10:00", "2026-11-24T08Z", "2026-11-24T08:30:00 Z", "2026-11-24T08:30:00+01:00:30"),
    *(
        "08:30",
        "08:30:00",
        "08:30:00Z",
        "08:30:00+01:00",
        "8:30",
        "24:00:00",
        "08:60",
        "08:30:60",
        "08:30:00.5",
        "0830",
        "T08:30",
    ),
    *(
        "P1D",
        "PT1H",
        "P1DT2H",
        "PT0.5S",
        "-PT5S",
        "P1W",
        "P1Y",
        "P1M",
        "P",
        "PT",
        "P1DT",
        "PT1H5S",
        "1:00:00",
        "PT1,5S",
        "p1d",
    ),
    *("P99999999W", "P99999999D", "P999999999D", "PT999999999H", "P1W1D", "PT5", "+P1D", "P-1D", "PT.5S", "3 days"),
    *(ID, ID.upper(), ID.replace("-", ""), f"urn:uuid:{ID}", f"{{{ID}}}", ID.replace("4678", "1678"), ID[:-1]),
    *("YQ==", "YQ=", "YQ", "YQ==\n", "Y Q==", "YWJj", "-_8=", "+/8=", "ä"),
    *("127.0.0.1", "127.0.0.01", "1.2.3", "::1", "fe80::1%eth0", "1::2::3", "256.0.0.1"),
]
NUMBERS = [
    0,
    1,
    2,
    5,
    -1,
    2**53,
    2**64,
    10**30,
    0.0,
    -0.0,
    1.0,
    2.0,
    5.0,
    5.5,
    -7.0,
    1e16,
    1e20,
    1e300,
    1e-7,
    True,
    False,
    None,
]
# Numbers that only their texts show to be whole, or not, or which one.
NUMBER_TEXTS = [
    *("9007199254740993.5", "9007199254740993.0", "9007199254740993", "12345678901234567.89", "-4503599627370497.25"),
    *("0.99999999999999999999", "1.00000000000000000001", "1.0000000000000000000", "5.00", "50e-1", "5.5e1", "55E-1"),
    *("1e-400", "-1e-400", "0e400", "-0.0", "1e-9999999", "1e300", "123456789012345678e-3"),
]


# --- the verdicts


def _as_ecma(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    r"""In ECMA-262, which JSON Schema refers to, `$` does not match before a newline."""
    if isinstance(value, str) and not re.search(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _is_integer(_: Any, value: Any) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return bool(Draft202012Validator.TYPE_CHECKER.is_type(value, "integer"))


_Validator = extend(
    Draft202012Validator,
    {"pattern": _as_ecma},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


@dataclasses.dataclass
class Verdicts:
    """What each of the three says to the arguments of a tool; and a second validator, which asserts the formats that it knows."""

    contract: Contract

    def __post_init__(self) -> None:
        self.schema = self.contract.input_schema() or {}
        self._published = _Validator(self.schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        self._other = jsonschema_rs.validator_for(self.schema, validate_formats=True)
        self._ignoring = jsonschema_rs.validator_for(self.schema, validate_formats=False)
        # Addresses have a format and no pattern.
        self._has_addresses = '"ipv' in str(self.schema).replace("'", '"')
        results = self.contract.output_schema() or {}
        self._results = jsonschema_rs.validator_for(results, validate_formats=True)

    def check(self, payload: Any) -> None:
        self._check(payload, payload)

    def check_text(self, payload: str) -> None:
        """Check a payload whose numbers only their texts show: all of the validators read each by its text."""
        raw = payload.encode()
        given = decode_exact(raw) if self.contract.has_decimals else decode_untyped(raw)[0]
        self._check(given, with_decimals(decode_exact(raw)))

    def _check(self, given: Any, payload: Any) -> None:
        """Check the verdict on what the actor is given, and those of the validators on the payload."""
        try:
            taken, problem = self.contract.arguments(given), None
        except ContractError as error:
            problem = str(error)
        verdicts = {
            "the published schema": self._published.is_valid(payload),
            "a validator that asserts formats": self._other.is_valid(payload),
            "the gateway": not validate(self.schema, payload),
            "the actor": problem is None,
        }
        if not self._has_addresses:
            verdicts["a validator that ignores formats"] = self._ignoring.is_valid(payload)
        assert len(set(verdicts.values())) == 1, (verdicts, problem)
        if problem is None and self.contract.result is not None:
            result = self.contract.dumped(taken)
            assert self._results.is_valid(result), ("the schema of results refuses", result)
            assert not validate(self.schema, result), ("the next actor refuses", result)
