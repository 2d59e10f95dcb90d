"""The Spark types of models (`protocol §10.dataframe.types`), and the types that have none."""

import dataclasses
import enum
from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from asya.contracts.spark_types import NoSparkTypeError, is_name, spark_type


class Color(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


@dataclasses.dataclass
class Tree:
    name: str
    children: "list[Tree]"


FIELDS: dict[str, tuple[Any, str]] = {
    "text": (str, "string"),
    "count": (int, "long"),
    "share": (float, "double"),
    "paid": (bool, "boolean"),
    "total": (Decimal, "decimal(38,18)"),
    "placed": (date, "date"),
    "at": (datetime, "timestamp"),
    "opens": (time, "string"),
    "key": (UUID, "string"),
    "color": (Color, "string"),
    "size": (Size, "long"),
    "risk": (Literal["low", "high"], "string"),
}


def types(kind: Any) -> dict[str, Any]:
    made: Any = spark_type(kind)
    return {field["name"]: field["type"] for field in made["fields"]}


def nullable(kind: Any) -> list[str]:
    made: Any = spark_type(kind)
    return [field["name"] for field in made["fields"] if field["nullable"]]


def make(library: str, name: str = "Outer", **fields: Any) -> Any:
    match library:
        case "pydantic":
            given: Any = {field: (kind, ...) for field, kind in fields.items()}
            return pydantic.create_model(name, **given)
        case "msgspec":
            return msgspec.defstruct(name, list(fields.items()))
        case "dataclass":
            return dataclasses.make_dataclass(name, list(fields.items()))
    return TypedDict(name, fields)  # type: ignore[operator]


LIBRARIES = ("pydantic", "msgspec", "dataclass", "TypedDict")


@pytest.mark.rule("10.dataframe.types")
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_types_are_the_same_whichever_library_a_model_is_made_with(library: str) -> None:
    inner = make(library, "Inner", price=Decimal)
    of_bytes = pydantic.Base64Bytes if library == "pydantic" else bytes
    several = {"prices": list[Decimal], "days": dict[str, date], "first": inner, "lines": list[inner], "raw": of_bytes}
    found = types(make(library, **{name: kind for name, (kind, _) in FIELDS.items()}, **several))
    assert {name: found[name] for name in FIELDS} == {name: kind for name, (_, kind) in FIELDS.items()}
    assert found["prices"] == {"type": "array", "elementType": "decimal(38,18)", "containsNull": False}
    assert (found["days"]["valueType"], found["days"]["keyType"]) == ("date", "string")
    assert found["lines"]["elementType"] == found["first"]
    assert [field["type"] for field in found["first"]["fields"]] == ["decimal(38,18)"]
    assert found["raw"] == "binary"


@pytest.mark.rule("10.dataframe.types")
@pytest.mark.parametrize("library", LIBRARIES)
def test_optional_fields_are_nullable(library: str) -> None:
    model = make(library, id=str, total=Decimal | None, prices=list[int | None], kind=Literal["a", None])
    assert nullable(model) == ["total", "kind"]
    assert types(model)["prices"]["containsNull"]


def test_fields_that_a_model_need_not_give_are_nullable() -> None:
    class Part(TypedDict, total=False):
        note: str

    assert nullable(Part) == ["note"]


def test_columns_have_the_names_that_travel() -> None:
    class Aliased(pydantic.BaseModel):
        total: Decimal = pydantic.Field(alias="grossTotal")

    assert list(types(Aliased)) == ["grossTotal"]


@pytest.mark.rule("10.dataframe.declaration")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (int | str, "payload.x: a union of 2 types has no Spark type; declare one of them"),
        (list[int | Decimal | None], r"payload.x\[\]: a union of 2 types"),
        (dict[str, int | str], r"payload.x.\*: a union of 2 types"),
        (Any, "payload.x: a value of any type has no Spark type; declare what it holds"),
        (list, r"payload.x\[\]: a value of any type"),
        (dict[str, Any], "payload.x: an object of anything"),
        (tuple[int, str], "payload.x: a tuple or a list of anything has no Spark type"),
        (None, "payload.x: null alone"),
        (Literal["a", 1], "payload.x: values of several types"),
        (Tree, r"payload.x.children\[\]: Tree contains itself"),
        (Annotated[int | str, pydantic.Field(description="either")], "payload.x: a union of 2 types"),
        (print, "payload.x: a value of any type"),
    ],
)
def test_a_type_without_a_spark_type_names_its_field(kind: Any, message: str) -> None:
    with pytest.raises(NoSparkTypeError, match=f"^{message}"):
        spark_type(dataclasses.make_dataclass("Record", [("x", kind)]))


def test_bytes_of_pydantic_are_text_unless_they_say_base64() -> None:
    with pytest.raises(NoSparkTypeError, match=r"^payload\.raw: bytes .* annotate them as pydantic\.Base64Bytes"):
        spark_type(make("pydantic", raw=bytes))


@pytest.mark.rule("10.dataframe.schema")
@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ("shop.Order", True),
        ("shop.models.Order", True),
        ("INT", False),
        ("n INT", False),
        ("n:INT", False),
        ("ARRAY<INT>", False),
        ("price DECIMAL(10,2)", False),
        ("`shop.id` INT", False),
        ('{"type":"struct","fields":[]}', False),
    ],
)
def test_names_joined_by_dots_are_the_name_of_a_model(declared: str, named: bool) -> None:
    assert is_name(declared) is named
