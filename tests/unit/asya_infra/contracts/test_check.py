"""The contracts of a mesh are held together: from the files of a user to the problems of the mesh file."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from asya.contracts.forms import DECIMAL
from asya.tasks.starts.tool_schemas import validate
from asya_infra.contracts.check import hold_together
from asya_infra.mesh_file import LoadedMesh, MeshFileError, load_mesh
from asya_infra.mesh_file.table import to_table
from tests.paths import PROJECT

MESH = """
namespace: shop
code: handlers
jobs: jobs
actors:
  check: {handler: shop.check}
  bill: {handler: shop.bill}
tools:
  order:
    input_schema: shop.Order
    route: [check, bill]
"""

SHOP = """
from dataclasses import dataclass
from decimal import Decimal

@dataclass
class Order:
    id: str
    total: Decimal

@dataclass
class Checked:
    id: str

def check(order: Order) -> RESULT: ...
def bill(id: str, total: Decimal) -> dict: ...
"""


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contracts-build")


def mesh(folder: Path, code: str, text: str = MESH, jobs: str = "") -> LoadedMesh:
    for name, content in (("mesh.yaml", text), ("handlers/shop.py", code), ("jobs/sums.py", jobs)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
        if "pydantic" in content:
            (folder / name).with_name("requirements.txt").write_text("pydantic\n")
    return load_mesh(folder / "mesh.yaml")


def problems(loaded: LoadedMesh, build: Path) -> Iterable[str]:
    with pytest.raises(MeshFileError) as caught:
        hold_together(loaded, build)
    return [str(problem).removeprefix(f"{loaded.path}:") for problem in caught.value.problems]


def test_a_mismatch_is_a_problem_of_the_line_where_the_actors_meet(tmp_path: Path, build: Path) -> None:
    loaded = mesh(tmp_path, SHOP.replace("RESULT", "Checked"))
    (problem,) = problems(loaded, build)
    assert problem == "11: tools.order.route[1]: 'bill' needs total: Decimal; 'check' gives none"


def test_a_model_is_the_schema_of_a_tool(tmp_path: Path, build: Path) -> None:
    held = hold_together(mesh(tmp_path, SHOP.replace("RESULT", "Order")), build)
    assert held.notes == ()
    assert to_table(held).tools["order"].input_schema == {
        "type": "object",
        "title": "Order",
        "properties": {"id": {"type": "string"}, "total": {"type": ["string", "number"], **DECIMAL.schema()}},
        "required": ["id", "total"],
    }


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("shop.Nothing", "cannot be read: AttributeError"),
        ("nowhere.Order", "cannot be read: ModuleNotFoundError: there is no module 'nowhere'"),
        ("shop.Decimal", "should be a model with fields"),
    ],
)
def test_a_model_that_is_none_is_a_problem(tmp_path: Path, build: Path, model: str, message: str) -> None:
    loaded = mesh(tmp_path, SHOP.replace("RESULT", "Order"), MESH.replace("shop.Order", model))
    (problem,) = (each for each in problems(loaded, build) if each.startswith("10: tools.order.input_schema: "))
    assert message in problem


RECURSIVE = """
from dataclasses import dataclass

@dataclass
class Order:
    id: str
    parent: "Order | None" = None

@dataclass
class Refund:
    refunded: str

Either = Order | Refund

def check(order: dict) -> dict: ...
def bill(order: dict) -> dict: ...
"""


@pytest.mark.rule("13.tools")
@pytest.mark.parametrize(("model", "fits", "unfit"), [("Order", "id", "refunded"), ("Either", "refunded", "other")])
def test_a_model_that_contains_itself_and_a_union_are_schemas_of_tools(
    tmp_path: Path, build: Path, model: str, fits: str, unfit: str
) -> None:
    held = hold_together(mesh(tmp_path, RECURSIVE, MESH.replace("shop.Order", f"shop.{model}")), build)
    assert held.notes == ()
    schema = to_table(held).tools["order"].input_schema
    assert schema["type"] == "object"
    assert not validate(schema, {fits: "7", "parent": {"id": "6", "parent": {"id": "5"}}})
    assert validate(schema, {unfit: "7"})
    if model == "Order":
        assert validate(schema, {"id": "7", "parent": {"id": "6", "parent": {"id": 5}}})


@pytest.mark.parametrize("value", ["Order", "shop/Order", "[1]", "5"])
def test_other_values_are_no_schema(tmp_path: Path, value: str) -> None:
    with pytest.raises(MeshFileError, match=r"tools\.order\.input_schema: should be"):
        mesh(tmp_path, SHOP, MESH.replace("shop.Order", value))


@pytest.mark.parametrize("failure", ["import nowhere", "raise RuntimeError('no region')", "import sys; sys.exit(3)"])
def test_an_import_that_fails_is_a_note(tmp_path: Path, build: Path, failure: str) -> None:
    text = MESH.replace("    input_schema: shop.Order\n", "")
    held = hold_together(mesh(tmp_path, f"{failure}\n{SHOP}", text), build)
    assert [note.partition("actors.")[2].partition(":")[0] for note in held.notes] == ["bill", "check"]
    assert all("importing its code failed" in note for note in held.notes)


def test_an_import_that_ends_the_process_is_a_note(tmp_path: Path, build: Path) -> None:
    text = MESH.replace("    input_schema: shop.Order\n", "")
    held = hold_together(mesh(tmp_path, f"import os; os._exit(3)\n{SHOP}", text), build)
    assert "its import ended the process (3)" in held.notes[0]


def test_code_without_types_is_not_imported(tmp_path: Path) -> None:
    code = "import nowhere\nfrom typing import Any\ndef check(p: dict[str, Any]) -> dict: ...\ndef bill(p): ...\n"
    held = hold_together(mesh(tmp_path, code, MESH.replace("    input_schema: shop.Order\n", "")), tmp_path / "unused")
    assert held.notes == ()
    assert not (tmp_path / "unused").exists()


def test_an_answer_is_kept_for_the_same_code(tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = mesh(tmp_path, SHOP.replace("RESULT", "Checked"))
    first = problems(loaded, build)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("read again"))
    assert problems(loaded, build) == first


def test_variables_of_actors_are_there_when_code_is_imported(tmp_path: Path, build: Path) -> None:
    code = f"import os\nTABLE, KEY = os.environ['TABLE'], os.environ['KEY']\n{SHOP.replace('RESULT', 'Order')}"
    text = MESH.replace("shop.check}", "shop.check, env: {TABLE: orders}, secrets: {KEY: shop/key}}")
    assert hold_together(mesh(tmp_path, code, text), build).notes == ()


JOBS = """
from decimal import Decimal
from asya_spark import context

def total(spark, prices: list[Decimal]) -> Decimal: ...
def all_totals(spark, envelopes: "DataFrame") -> "DataFrame": ...
"""


@pytest.mark.slow
def test_jobs_are_held_to_their_types_too(tmp_path: Path, build: Path) -> None:
    text = MESH.replace(
        "actors:", "actors:\n  total: {spark: {job: sums.total}}\n  all: {spark: {job: sums.all_totals}}"
    )
    text = text.replace("[check, bill]", "[check, all, total, bill]")
    found = problems(mesh(tmp_path, SHOP.replace("RESULT", "Checked"), text, JOBS), build)
    assert found == ["13: tools.order.route[3]: 'bill' needs dict; 'total' gives Decimal"]


ORDERS = """
import dataclasses
from decimal import Decimal
from pyspark.sql.types import DecimalType, StringType, StructType

@dataclasses.dataclass
class Order:
    id: str
    total: Decimal

@dataclasses.dataclass
class Either:
    id: str
    total: int | Decimal

ORDER = StructType().add("id", StringType()).add("total", DecimalType(12, 2), nullable=False)

def score(spark, envelopes: "DataFrame") -> "DataFrame": ...
"""


def scored(folder: Path, declared: str, result: str = "Checked", jobs: str = ORDERS) -> LoadedMesh:
    actor = f"  score: {{spark: {{job: sums.score, payload_schema: {declared}}}}}"
    text = MESH.replace("actors:", f"actors:\n{actor}").replace("[check, bill]", "[check, score, check]")
    return mesh(folder, SHOP.replace("RESULT", result), text, jobs)


@pytest.mark.rule("10.dataframe.schema")
@pytest.mark.parametrize("declared", ["sums.Order", "sums.ORDER"])
@pytest.mark.slow
def test_the_type_of_a_dataframe_is_held_against_what_comes_before_it(
    tmp_path: Path, build: Path, declared: str
) -> None:
    (problem,) = problems(scored(tmp_path, declared), build)
    assert problem == "12: tools.order.route[1]: 'score' needs total: Decimal; 'check' gives none"
    held = hold_together(scored(tmp_path, declared, "Order"), build)
    assert held.notes == ()


def test_the_ddl_of_a_dataframe_says_nothing_to_the_routes(tmp_path: Path, build: Path) -> None:
    assert hold_together(scored(tmp_path, "total INT"), build).notes == ()


@pytest.mark.rule("10.dataframe.declaration")
@pytest.mark.slow
def test_a_field_without_a_spark_type_is_a_problem(tmp_path: Path, build: Path) -> None:
    assert problems(scored(tmp_path, "sums.Either"), build) == [
        "6: actors.score.spark.payload_schema: 'sums.Either': payload.total: a union of 2 types has no Spark type; "
        "declare one of them"
    ]


def test_the_type_of_a_dataframe_that_cannot_be_imported_is_a_note(tmp_path: Path, build: Path) -> None:
    (note,) = hold_together(scored(tmp_path, "sums.Order", jobs=f"import nowhere\n{ORDERS}"), build).notes
    assert "actors.score: its types are not known" in note


FILES = [PROJECT / "mesh.yaml", *(path for folder in ("tests", "bench") for path in (PROJECT / folder).rglob("*.yaml"))]
MESHES = [path for path in FILES if "mesh" in str(path.relative_to(PROJECT))]


@pytest.mark.parametrize("path", MESHES, ids=str)
@pytest.mark.slow
def test_no_mesh_of_this_project_has_a_mismatch(path: Path, build: Path) -> None:
    assert hold_together(load_mesh(path), build).notes == ()


def test_imported_code_gets_no_credentials(tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    code = f"import os\nassert os.environ['AWS_SECRET_ACCESS_KEY'] != 'hidden'\n{SHOP.replace('RESULT', 'Order')}"
    assert hold_together(mesh(tmp_path, code), build).notes == ()


def test_packages_without_hashes_are_refused_where_hashes_are_required(tmp_path: Path, build: Path) -> None:
    text = MESH.replace("input_schema: shop.Order", "input_schema: {type: object}")
    loaded = mesh(tmp_path, SHOP.replace("RESULT", "Order"), f"{text}\nrequirements_hashes: required\n")
    (tmp_path / "handlers" / "requirements.txt").write_text("nothing-of-this-name==1.0\n")
    notes = hold_together(loaded, build).notes
    assert len(notes) == 2
    assert all("hash" in note for note in notes)


UNIONS = """
import enum
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

import msgspec
import pydantic

@dataclass
class Accepted:
    order: str

@dataclass
class Rejected:
    order: str
    why: str = ""

@dataclass
class Twin:
    order: str

@dataclass
class Known:
    order: str
    kind: Literal["known"] = "known"

@dataclass
class Unknown:
    order: str
    kind: Literal["unknown"] = "unknown"

class Model(pydantic.BaseModel):
    order: str

class ModelWithReason(pydantic.BaseModel):
    order: str
    why: str = ""

class Struct(msgspec.Struct, omit_defaults=True):
    order: str
    why: str = ""

@dataclass
class Done:
    pass

@dataclass
class Whole:
    amount: int

@dataclass
class Broken:
    amount: str

@dataclass
class Mixed:
    amount: int | str

class Dict(TypedDict):
    order: str

class LargerDict(TypedDict):
    order: str
    why: NotRequired[str]

"""
RESULTS = [
    ("Accepted | Twin", "Accepted and Twin"),
    ("list[Accepted | None | Twin]", "Accepted and Twin"),
    ("dict[str, Rejected] | Accepted | Struct", "Accepted and Struct"),
    ("Model | Accepted", "Accepted and Model"),
    ("Whole | Mixed", "Whole and Mixed"),
    ("Accepted | Rejected", ""),
    ("Model | ModelWithReason", ""),
    ("Known | Unknown", ""),
    ("Whole | Broken", ""),
    ("Done | Whole", ""),
    ("Dict | LargerDict", ""),
    ("Accepted | dict", ""),
]
"""The type of a result, and the two of its options that cannot be told apart."""


@pytest.mark.slow
@pytest.mark.rule("6.typed.union")
def test_options_that_cannot_be_told_apart_are_refused(tmp_path: Path, build: Path) -> None:
    handlers = [f"def check_{number}(order: dict) -> {result}: ..." for number, (result, _) in enumerate(RESULTS)]
    actors = [f"  check-{number}: {{handler: shop.check_{number}}}" for number in range(len(RESULTS))]
    tools = [
        f"  tool-{number}: {{input_schema: {{type: object}}, route: [check-{number}]}}"
        for number in range(len(RESULTS))
    ]
    text = ["", "namespace: shop", "code: handlers", "actors:", *actors, "tools:", *tools]
    found = list(problems(mesh(tmp_path, "\n".join([UNIONS, *handlers]), "\n".join(text)), build))
    refused = [(5 + number, pair) for number, (_, pair) in enumerate(RESULTS) if pair]
    for problem, (line, pair) in zip(found, refused, strict=True):
        assert problem.startswith(f"{line}: ")
        assert f"check-{line - 5}" in problem
        assert all(name in problem for name in pair.split(" and "))
        assert "cannot be told apart" in problem


@pytest.mark.rule("6.typed.union")
def test_options_of_a_job_are_looked_at_too(tmp_path: Path, build: Path) -> None:
    code = "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n@dataclass\nclass B:\n    x: int\n"
    text = """
namespace: shop
jobs: jobs
actors:
  total:
    spark: {job: sums.total}
tools:
  order: {input_schema: {type: object}, route: [total]}
"""
    loaded = mesh(tmp_path, "", text, f"{code}def total(spark, payload: A | B) -> dict: ...\n")
    (problem,) = problems(loaded, build)
    assert problem.startswith("6: ")
    assert "A and B cannot be told apart" in problem
