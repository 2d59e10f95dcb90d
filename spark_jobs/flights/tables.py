"""The source tables: their required columns with types, and the reader of their CSV files."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from asya_spark import data

FLIGHTS = {
    "year": "int",
    "month": "int",
    "day": "int",
    "dep_time": "int",  # local times are HHMM; null = never departed
    "sched_dep_time": "int",
    "dep_delay": "double",  # minutes, negative = early
    "arr_time": "int",
    "sched_arr_time": "int",
    "arr_delay": "double",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "air_time": "double",  # minutes
    "distance": "double",  # miles
    "hour": "int",  # of sched_dep_time
    "minute": "int",
    "time_hour": "string",  # UTC, kept as text: no job needs its time zone
}
AIRLINES = {"carrier": "string", "name": "string"}
AIRPORTS = {"faa": "string", "name": "string"}
WEATHER = {
    "origin": "string",
    "year": "int",
    "month": "int",
    "day": "int",
    "hour": "int",
    "precip": "double",  # inches in that hour
}
MALFORMED = "_malformed"  # the column for the text of a row that Spark cannot read


def read_table(spark: SparkSession, reference: str, types: Mapping[str, str]) -> DataFrame:
    """Return the rows of a CSV file, plain or gzip: the columns of `types` with their types, any others as text.

    Columns are matched by name. `NA`, `NaN` and empty values are null. A row that does not fit fails the query that
    reads it, and the error names the file and the row. So no extra pass over the file looks for such rows.

    Raises:
        ValueError: if columns are missing. The error names the file and the columns.
    """
    uri = data.uri(reference)
    header = spark.read.csv(uri, header=True).columns
    if missing := [name for name in types if name not in header]:
        raise ValueError(f"{reference} lacks the column(s) {', '.join(missing)}; it has {', '.join(header) or 'none'}")

    # pandas writes integer columns with nulls as 517.0, so integers are read as doubles first.
    schema = StructType()
    for name in header:
        schema.add(name, "double" if types.get(name) == "int" else types.get(name, "string"))
    schema.add(MALFORMED, "string")
    rows = spark.read.csv(uri, schema, header=True, nullValue="NA", columnNameOfCorruptRecord=MALFORMED)

    # Spark turns a value of the wrong type into null, and a flight without dep_time would count as canceled.
    complaint = F.concat(F.lit(f"{reference} has a row that does not fit its columns: "), MALFORMED)
    fitting = rows.where(F.when(F.col(MALFORMED).isNull(), F.lit(True)).otherwise(F.raise_error(complaint)))
    typed = {name: F.col(name).cast(types[name]) for name in types}
    return fitting.drop(MALFORMED).replace(float("nan"), None).withColumns(typed)


def first_per(table: DataFrame, keys: Sequence[str], value: str) -> DataFrame:
    """Return one row for each key, with the `value` of the first row in file order. The result is small: broadcast it."""
    rows = table.select(*keys, value, F.monotonically_increasing_id().alias("row"))
    return F.broadcast(rows.groupBy(*keys).agg(F.min_by(value, "row").alias(value)))
