"""The one answer of the jobs `probe-ansi` and `probe-plain` of the mesh `heavy`, whichever way starts their Spark.

`tests/spark/test_one_answer.py` has `asya run` and the test kit, `tests/cloud/test_heavy_one_answer.py` has `asya dev` and the
local cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.doubles.jars import jar_with_class
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MESH = PROJECT / "tests" / "cloud" / "meshes" / "heavy"
DATA = {"probe/line.txt": b"one line\n", "probe/own.jar": jar_with_class("own/Hello")}
"""What the jobs find in the data of the mesh, by reference."""

# Places, names, ports and times: each run has its own.
_OF_A_RUN = (
    *("spark.app.", "spark.driver.port", "spark.local.dir", "spark.sql.warehouse.dir", "spark.master"),
    *("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions", "spark.jars", "spark.repl.local.jars"),
    *("spark.executorEnv.ASYA_", "spark.executorEnv.PYTHONPATH", "spark.submit."),
    *("spark.hadoop.fs.s3.", "spark.hadoop.fs.s3a.", "spark.hadoop.fs.viewfs.", "spark.hadoop.fs.disk."),
)
_SETTINGS = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.hadoop.probe.key": "hadoop",
    "spark.probe.key": "own",
    "spark.executorEnv.PROBE_UNIT": "lines",
    "spark.driver.memory": "1024m",
    # Of each driver of a single machine, which stays closed to its other users.
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Of each PySpark.
    "spark.executor.id": "driver",
    "spark.rdd.compress": "True",
    "spark.serializer.objectStreamReset": "100",
    "spark.sql.artifact.isolation.enabled": "false",
}
_HERE = {"python": "3.12", "package": True, "file": "beside", "variable": "lines"}
_SAME = {
    "CAST(1 AS DECIMAL(38,18)) / CAST(3 AS DECIMAL(38,18))": "Decimal('0.333333')",
    "CAST(1.10 AS DECIMAL(10,2)) * CAST(3 AS DECIMAL(10,0))": "Decimal('3.30')",
    "CAST('NaN' AS DOUBLE)": "nan",
    "CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)": "True",
    "CAST('NaN' AS DOUBLE) > CAST('Infinity' AS DOUBLE)": "True",
    "0.1D + 0.2D": "0.30000000000000004",
    "CAST(CAST(0 AS TIMESTAMP) AS STRING)": "'1970-01-01 09:00:00'",
    "version()": "'4.1.1 c0690c763bafabd08e7079d1137fa0a769a05bae'",
}
_ANSI = {
    "CAST('abc' AS INT)": "NumberFormatException CAST_INVALID_INPUT",
    "2147483647 + 1": "ArithmeticException ARITHMETIC_OVERFLOW",
    "1 / 0": "ArithmeticException DIVIDE_BY_ZERO",
    "CAST(300 AS TINYINT)": "ArithmeticException CAST_OVERFLOW",
    "array(1)[5]": "ArrayIndexOutOfBoundsException INVALID_ARRAY_INDEX",
    "to_date('2026-02-30')": "DateTimeException CAST_INVALID_INPUT",
    "CAST(99999999999999999999999999999999999999 AS DECIMAL(38,0)) + 1": (
        "ArithmeticException NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"
    ),
}
_PLAIN = {
    **dict.fromkeys(_ANSI, "None"),
    "2147483647 + 1": "-2147483648",
    "CAST(300 AS TINYINT)": "44",
}
ANSWERS: dict[str, dict[str, Any]] = {
    actor: {
        "settings": {**_SETTINGS, **settings},
        "hadoop": "hadoop",
        "jar": "own.Hello",
        "data": "one line",
        "values": {**_SAME, **values},
        "driver": _HERE,
        "workers": _HERE,
    }
    for actor, settings, values in (
        ("probe-ansi", {}, _ANSI),
        ("probe-plain", {"spark.sql.ansi.enabled": "false"}, _PLAIN),
    )
}


def comparable(answer: Mapping[str, Any], but: Collection[str] = (), python: str | None = None) -> dict[str, Any]:
    """Return an answer without what each run has of its own.

    Args:
        but: Settings that differ where the job ran.
        python: The Python that the job ran on, if it may be another one than that of job runs.
    """
    settings = {name: value for name, value in answer["settings"].items() if not name.startswith(_OF_A_RUN)}
    for name in but:
        settings.pop(name, None)
    places = {place: answer[place] | ({"python": "any"} if python else {}) for place in ("driver", "workers")}
    if python:
        assert {answer[place]["python"] for place in places} <= {python, _HERE["python"]}
    return {**answer, "settings": settings, **places}
