"""Handlers and job functions that do not exist, and files that would hide a module of the mesh."""

from pathlib import Path

import pytest

from tests.unit.asya_infra.mesh_file.loading import problems_of

HANDLERS = """
from somewhere import everything as imported
def one(payload): return payload
async def many(payload): yield payload
class Shop:
    def sell(self, payload): return payload
    class Inner:
        def make(self, payload): return payload
class Bigger(Shop): ...
try:
    from fast import quick
except ImportError:
    def quick(payload): return payload
renamed = one
"""
JOBS = """
from elsewhere import Imported
class Order: ...
COUNT = StructType()
def crunch(spark, payload): return payload
def lonely(spark): ...
def crunch_all(spark, envelopes): return envelopes
"""


@pytest.fixture(autouse=True)
def code(folder: Path) -> None:
    """Give the folder handlers and jobs of every form."""
    (folder / "functions/handlers/shop.py").write_text(HANDLERS)
    (folder / "spark_jobs/heavy.py").write_text(JOBS)


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        ("shop.one", None),
        ("shop.many", None),
        ("shop.Shop.sell", None),
        ("shop.Bigger.sell", None),  # inherited: only running it could tell
        ("shop.quick", None),
        ("shop.renamed", None),
        ("shop.imported", None),
        ("shop.tow", "functions/handlers/shop.py has no 'tow'"),
        ("shop.mny", "functions/handlers/shop.py has no 'mny'; did you mean 'many'?"),
        ("shp.one", "there is no module 'shp' in functions/handlers; did you mean 'shop'?"),
        ("shop.Shop", "'Shop' in functions/handlers/shop.py is a class; add the name of a method, as in Shop.method"),
        ("shop.Shop.buy", "class Shop in functions/handlers/shop.py has no 'buy'"),
        ("shop.one.two", "'one' in functions/handlers/shop.py is a function and has no 'two'"),
        ("shop.Shop.Inner.make", None),
        ("shop.Shop.sell.foo", "Shop.sell in functions/handlers/shop.py is a method and has no 'foo'"),
        ("shop.Shop.Inner.made", "class Inner in functions/handlers/shop.py has no 'made'; did you mean 'make'?"),
        ("shop", "should have the form module.function or module.Class.method; got 'shop'"),
        ("../shop.one", "should have the form module.function or module.Class.method; got '../shop.one'"),
    ],
)
def test_handlers_are_found_without_running_code(handler: str, problem: str | None) -> None:
    expected = [f"3: actors.a.handler: {problem}"] if problem else []
    assert problems_of(f"namespace: shop\nactors:\n  a: {{handler: {handler}}}\n") == expected


def test_a_handler_with_a_syntax_error(folder: Path) -> None:
    (folder / "functions/handlers/broken.py").write_text("def one(payload)\n    return 1\n")
    (problem,) = problems_of("namespace: shop\nactors:\n  a: {handler: broken.one}\n")
    assert problem == "3: actors.a.handler: functions/handlers/broken.py:1 is not valid Python: expected ':'"


def test_a_module_in_place_of_a_function(folder: Path) -> None:
    (folder / "functions/handlers/flights").mkdir()
    (folder / "functions/handlers/flights/__init__.py").touch()
    (folder / "functions/handlers/flights/inspect.py").touch()
    (problem,) = problems_of("namespace: shop\nactors:\n  a: {handler: flights.inspect}\n")
    assert "flights.inspect" in problem or "has no 'inspect'" in problem


def test_jobs(folder: Path) -> None:
    (problem,) = problems_of("namespace: shop\nactors:\n  a: {spark: {job: heavy.lonely}}\n")
    assert (
        problem
        == "3: actors.a.spark.job: 'heavy.lonely' (spark_jobs/heavy.py:6) should take two arguments: spark, payload"
    )


@pytest.mark.rule("10.dataframe.schema")
@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("n INT", None),
        ("ARRAY<INT>", None),
        ("heavy.Order", None),
        ("heavy.COUNT", None),
        ("heavy.Imported", None),  # only running the code could tell
        ("heavy.Ordr", "spark_jobs/heavy.py has no 'Ordr'; did you mean 'Order'?"),
        ("hevy.Order", "there is no module 'hevy' in spark_jobs; did you mean 'heavy'?"),
        ("heavy.crunch", "'heavy.crunch' in spark_jobs/heavy.py is a function; name a model or a StructType"),
    ],
)
def test_the_type_of_payloads_is_found_without_running_code(declared: str, problem: str | None) -> None:
    text = f"namespace: shop\nactors:\n  a: {{spark: {{job: heavy.crunch_all, payload_schema: {declared}}}}}\n"
    expected = [f"3: actors.a.spark.payload_schema: {problem}"] if problem else []
    assert problems_of(text) == expected


def test_the_type_of_payloads_is_for_a_job_with_a_dataframe() -> None:
    (problem,) = problems_of(
        "namespace: shop\nactors:\n  a: {spark: {job: heavy.crunch, payload_schema: heavy.Order}}\n"
    )
    assert problem == (
        "3: actors.a.spark.payload_schema: 'heavy.crunch' takes one payload and no DataFrame; remove this key, and annotate "
        "the payload instead"
    )


def test_folders(folder: Path) -> None:
    (problem,) = problems_of("namespace: shop\ncode: elsewhere\nactors:\n  a: {handler: shop.one}\n")
    assert problem == "2: code: there is no folder elsewhere"
    (folder / "functions/handlers/asya").mkdir()
    (problem,) = problems_of("namespace: shop\nactors:\n  a: {handler: shop.one}\n")
    assert problem.startswith("1: code: functions/handlers/asya would hide a file of the mesh with the same name")


@pytest.mark.parametrize(
    ("file", "hidden"),
    [
        ("email.py", "email"),
        ("email/__init__.py", "email"),
        ("msgspec.py", "msgspec"),
        ("email/texts.py", None),  # a folder without __init__.py comes last on the path
        ("boto3/__init__.py", None),  # a copy that `pip install --target` has made
        ("emails.py", None),
        ("shops/email.py", None),
    ],
)
def test_a_file_that_hides_a_module_is_found(folder: Path, file: str, hidden: str | None) -> None:
    """The function could not import it: the mesh would run no handler of the folder."""
    path = folder / "functions/handlers" / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    place = path.parent if path.name == "__init__.py" else path
    problem = (
        f"1: code: {place.relative_to(folder)} would hide the module '{hidden}', which other code imports; rename it"
    )
    expected = [problem] if hidden else []
    assert problems_of("namespace: shop\nactors:\n  a: {handler: shop.one}\n") == expected


def test_a_job_file_that_hides_a_module_is_found(folder: Path) -> None:
    (folder / "spark_jobs/py4j.py").touch()
    (problem,) = problems_of("namespace: shop\nactors:\n  a: {spark: {job: heavy.crunch}}\n")
    assert problem == "1: jobs: spark_jobs/py4j.py would hide the module 'py4j', which other code imports; rename it"


@pytest.mark.rule("6.code.refused")
def test_a_handler_and_a_job_that_are_not_deployed_are_refused(folder: Path) -> None:
    for name in ("functions/handlers", "spark_jobs"):
        (folder / name / "node_modules").mkdir()
        (folder / name / "node_modules" / "mine.py").write_text("def one(spark, payload): ...\n")
    left_out = "is not deployed: it has packages of Node; give it another name if handlers read it"
    assert problems_of(
        "namespace: shop\nactors: {a: {handler: node_modules.mine.one}, b: {spark: {job: node_modules.mine.one}}}"
    ) == [
        f"2: actors.a.handler: functions/handlers/node_modules/mine.py {left_out}",
        f"2: actors.b.spark.job: spark_jobs/node_modules/mine.py {left_out}",
    ]


@pytest.mark.rule("6.code.refused")
def test_files_that_cannot_be_deployed_are_refused(folder: Path) -> None:
    (folder / "functions/handlers/rates.csv").symlink_to("../gone.csv")
    [problem] = problems_of("namespace: shop\nactors: {a: {handler: shop.one}}")
    assert problem.endswith(
        "functions/handlers/rates.csv is a link to ../gone.csv, which does not exist; mend or remove it"
    )


@pytest.mark.rule("6.code")
def test_a_handler_behind_a_link_is_found(folder: Path) -> None:
    (folder / "shared").mkdir()
    (folder / "shared" / "taxes.py").write_text("def one(payload): return payload\n")
    (folder / "functions/handlers/common").symlink_to("../../shared")
    assert problems_of("namespace: shop\nactors: {a: {handler: common.taxes.one}}") == []
