"""protocol §10.dataframe.schema: the column of the models and Spark types that a `payload_schema` names."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from asya.contracts.errors import ContractError
from asya_spark.columns import UNDECLARED, PayloadSchemaError, payload_column

MODELS = """
import dataclasses
from datetime import datetime
from decimal import Decimal
from pydantic import BaseModel, Field, field_validator
from pyspark.sql.types import LongType, StructType

class Line(BaseModel):
    price: Decimal

class Order(BaseModel):
    id: str
    total: Decimal = Field(alias="grossTotal")
    placed: datetime
    lines: list[Line] = []
    note: str | None = None

    @field_validator("id")
    @classmethod
    def upper(cls, value: str) -> str:
        return {"a": "A"}[value]

@dataclasses.dataclass
class Either:
    price: int | str

COUNT = StructType().add("n", LongType(), nullable=False)
"""


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "declared_models.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.rule("10.dataframe.schema")
def test_without_a_declaration_a_payload_is_json_text() -> None:
    assert payload_column(None) is UNDECLARED
    assert UNDECLARED.value({"a": [1]}) == '{"a": [1]}'


@pytest.mark.rule("10.dataframe.schema", "10.dataframe.types")
def test_a_model_validates_and_fills_the_columns() -> None:
    column = payload_column("declared_models.Order")
    assert column.kind.simpleString() == (
        "struct<id:string,grossTotal:decimal(38,18),placed:timestamp,lines:array<struct<price:decimal(38,18)>>,note:string>"
    )
    payload = {"id": "a", "grossTotal": "1.20", "placed": "2026-11-24T10:30:00+02:00", "other": 1}
    assert column.value(payload) == ("A", Decimal("1.20"), datetime(2026, 11, 24, 8, 30, tzinfo=UTC), [], None)


@pytest.mark.rule("10.dataframe.unfit")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grossTotal": "much"}, r"^payload\.grossTotal: "),
        ({"lines": [{"price": "1"}, {}]}, r"^payload\.lines\[1\]\.price: missing"),
        ({"grossTotal": "1e20"}, r"^payload\.grossTotal: should be a decimal with at most 20 digits"),
    ],
)
def test_a_payload_that_does_not_fit_names_the_field(change: dict[str, object], message: str) -> None:
    payload = {"id": "a", "grossTotal": "1.20", "placed": "2026-11-24T08:30:00Z"}
    with pytest.raises(ContractError, match=message):
        payload_column("declared_models.Order").value(payload | change)


@pytest.mark.rule("10.dataframe.schema")
def test_a_struct_type_is_a_declaration_too() -> None:
    column = payload_column("declared_models.COUNT")
    assert column.value({"n": 3}) == (3,)
    with pytest.raises(ContractError, match=r"^payload\.n: missing$"):
        column.value({})


@pytest.mark.rule("10.dataframe.declaration")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("declared_models.Either", r"payload\.price: a union of 2 types has no Spark type"),
        ("declared_models.Nothing", "cannot be read: AttributeError: .*'Nothing'; give a DDL text such as"),
        ("nowhere.Order", "cannot be read: ModuleNotFoundError: No module named 'nowhere'"),
        ("declared_models.dataclasses", "payload: a value of any type has no Spark type"),
    ],
)
def test_a_declaration_that_cannot_be_used_says_why(name: str, message: str) -> None:
    with pytest.raises(PayloadSchemaError, match=message):
        payload_column(name)
