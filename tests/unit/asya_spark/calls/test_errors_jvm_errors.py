"""What the JVM says about an error (`protocol §10.jvm-errors`)."""

import pytest
from pyspark.errors import PythonException

from asya_spark.calls.errors import cause_of, describe, worker_error

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/jobs/shop.py", line 3, in price
    return int(text)
           ^^^^^^^^^
{end}
"""


@pytest.mark.rule("10.jvm-errors")
@pytest.mark.parametrize(
    ("end", "name", "message"),
    [
        ("ValueError: no number: 'x'", "ValueError", "no number: 'x'"),
        ("shop.PriceError: first line\nsecond: line", "shop.PriceError", "first line\nsecond: line"),
        ("KeyError", "KeyError", ""),
        ("shop.price.<locals>.OwnError: x", "shop.price.<locals>.OwnError", "x"),
    ],
)
def test_the_error_of_a_python_worker_is_at_the_end_of_its_traceback(end: str, name: str, message: str) -> None:
    error = worker_error(WORKER.format(end=end))
    assert error is not None
    assert (error.name, error.message) == (name, message)


def test_the_last_of_chained_errors_counts() -> None:
    first = WORKER.format(end="ValueError: first")
    error = worker_error(
        f"{first}\nDuring handling of the above exception, another exception occurred:\n{WORKER.format(end='OSError: second')}"
    )
    assert error is not None
    assert (error.name, error.loaded) == ("OSError", OSError)


@pytest.mark.parametrize("text", ["", "no traceback: at all", WORKER.format(end="something went wrong here: 1")])
def test_a_text_without_an_error_has_none(text: str) -> None:
    assert worker_error(text) is None


@pytest.mark.rule("10.jvm-errors")
def test_an_error_of_a_worker_is_described_as_the_users_own() -> None:
    described = describe(PythonException(WORKER.format(end="ZeroDivisionError: division by zero")))
    assert (described.type, described.message) == ("ZeroDivisionError", "division by zero")
    assert described.mro[:2] == ("ArithmeticError", "Exception")
    assert "org.apache.spark.api.python.PythonException" in described.mro


def test_an_error_of_python_alone_has_only_its_own_ancestors() -> None:
    assert describe(KeyError("x")).mro == ("LookupError", "Exception")


SPARK = "org.apache.spark.SparkException"
READ = (SPARK, "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3://data/rows.csv.  SQLSTATE: KD001")


@pytest.mark.rule("10.jvm-errors")
@pytest.mark.parametrize(
    ("causes", "kind", "message"),
    [
        (
            [READ, ("java.lang.RuntimeException", "rows.csv is not a Parquet file")],
            "FAILED_READ_FILE.NO_HINT",
            "Encountered error while reading file s3://data/rows.csv."
            " (java.lang.RuntimeException: rows.csv is not a Parquet file; clean at jobs.py:3)",
        ),
        (
            [
                READ,
                (SPARK, "[MALFORMED_RECORD_IN_PARSING] Malformed record: [x].\nParse Mode: FAILFAST. SQLSTATE: 22023"),
            ],
            "MALFORMED_RECORD_IN_PARSING",
            "Malformed record: [x]. (clean at jobs.py:3)\nwhile reading s3://data/rows.csv\nParse Mode: FAILFAST.",
        ),
        (
            [
                ("java.lang.IllegalStateException", "closed\n\tat java.base/Thread.run"),
                ("java.lang.NullPointerException", ""),
            ],
            "java.lang.NullPointerException",
            "closed (clean at jobs.py:3)",
        ),
        ([("java.lang.OutOfMemoryError", "")], "java.lang.OutOfMemoryError", "(clean at jobs.py:3)"),
    ],
)
def test_an_error_of_the_jvm_is_described_as_its_cause(causes: list[tuple[str, str]], kind: str, message: str) -> None:
    assert cause_of(causes, "clean at jobs.py:3") == (kind, message)


class _JavaException:
    """An exception of Java, as Py4J gives it."""

    def __init__(self, name: str, message: str | None, cause: "_JavaException | None" = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def getClass(self) -> "_JavaException":  # noqa: N802 - Java's name
        return self

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self._name

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        return self._message

    def getCause(self) -> "_JavaException | None":  # noqa: N802 - Java's name
        return self._cause


class _JvmFailedError(Exception):
    def __init__(self, java_exception: _JavaException) -> None:
        super().__init__("An error occurred while calling o59.collectToPython.")
        self.java_exception = java_exception


@pytest.mark.rule("10.jvm-errors")
def test_the_error_of_a_lost_task_is_found_in_the_text_of_the_job() -> None:
    text = (
        "Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 times, most recent failure: Lost task 0.3 in stage 2.0"
        " (TID 2) (10.0.0.7 executor 1): com.shop.OwnError: [BAD_ORDER] order 7 is bad\n\tat com.shop.Order.read(Order.java:3)"
    )
    described = describe(_JvmFailedError(_JavaException(SPARK, text)))
    assert (described.type, described.message) == ("BAD_ORDER", "order 7 is bad")
    assert {SPARK, "com.shop.OwnError"} <= set(described.mro)


def test_a_long_plan_is_cut_at_its_end() -> None:
    message = f"[UNRESOLVED_COLUMN] no column `price`\n{'Project ' * 4_000}"
    described = describe(_JvmFailedError(_JavaException(SPARK, message)))
    assert described.message.startswith("no column `price`\nProject ")
    assert len(described.message.encode()) <= 16 * 1024
