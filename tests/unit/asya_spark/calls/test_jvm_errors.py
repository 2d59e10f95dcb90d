"""What the JVM says about an error (`protocol §10.jvm-errors`)."""

import pytest
from pyspark.errors import PythonException

from asya_spark.calls.errors import describe
from asya_spark.calls.jvm_errors import worker_error

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
