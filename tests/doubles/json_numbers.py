"""Any number that JSON has a form for, and that is in the range of floats."""

import math
from decimal import Decimal

from hypothesis import strategies as st

_WHOLE = st.one_of(st.integers(0, 20), st.integers(0, 10**40)).map(str)
_FRACTION = st.one_of(
    st.just(""), st.from_regex(r"\.[0-9]{1,3}", fullmatch=True), st.from_regex(r"\.[0-9]{1,30}", fullmatch=True)
)
_EXPONENT = st.one_of(st.just(""), st.just(""), st.from_regex(r"[eE][+-]?[0-9]{1,3}", fullmatch=True))

NUMBERS = st.builds(lambda *parts: "".join(parts), st.sampled_from(["", "-"]), _WHOLE, _FRACTION, _EXPONENT).filter(
    lambda text: math.isfinite(float(text))
)
"""The texts of numbers."""


def are_equal(seen: str, text: str) -> bool:
    """Whether two texts are the same number; without an exponent with the same digits, so that `1.10` is not `1.1`."""
    one, other = Decimal(seen), Decimal(text)
    return one == other and ("e" in text.lower() or not one or one.as_tuple() == other.as_tuple())
