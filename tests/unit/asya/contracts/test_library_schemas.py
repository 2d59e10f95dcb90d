"""The schemas of types of pydantic and msgspec say the forms that travel (`protocol §6.typed.forms`)."""

from datetime import datetime, time
from typing import Annotated

import msgspec

from asya.contracts import forms
from asya.contracts.function import input_schema


class Inner(msgspec.Struct):
    at: datetime


class Outer(msgspec.Struct):
    at: datetime
    maybe: datetime | None
    described: Annotated[datetime, msgspec.Meta(description="when")]
    several: list[datetime | None]
    opens: dict[str, time]
    inner: Inner | None
    again: "Outer | None" = None


def test_times_of_msgspec_have_their_format_at_every_depth() -> None:
    definitions = input_schema(Outer)["$defs"]
    fields = definitions["Outer"]["properties"]
    of_time = {"type": "string", **forms.DATE_TIME.schema()}
    assert fields["at"] == definitions["Inner"]["properties"]["at"] == of_time
    assert fields["maybe"]["anyOf"] == fields["several"]["items"]["anyOf"] == [of_time, {"type": "null"}]
    assert fields["described"] == {"description": "when", **of_time}
    assert fields["opens"]["additionalProperties"] == {"type": "string", **forms.TIME.schema()}
