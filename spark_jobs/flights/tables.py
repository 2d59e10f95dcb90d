"""The source tables: their required columns with types, and the reader of their CSV files."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession, Window
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
    """Read a CSV file, plain or gzip: the columns of `types` with their types, any others as text.

    Columns are matched by name. `NA`, `NaN` and empty values are null.

    Raises:
        ValueError: if columns are missing or a row does not fit. The error names the file, and the columns or the row.
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
    if row := rows.where(F.col(MALFORMED).isNotNull()).first():
        raise ValueError(f"{reference} has a row that does not fit its columns: {row[MALFORMED]}")
    typed = {name: F.col(name).cast(types[name]) for name in types}
    return rows.drop(MALFORMED).replace(float("nan"), None).withColumns(typed)


def first_per(table: DataFrame, *keys: str) -> DataFrame:
    """Keep the first row in file order of the rows with equal `keys`."""
    rows = Window.partitionBy(*keys).orderBy("row")
    numbered = table.withColumn("row", F.monotonically_increasing_id())
    return numbered.withColumn("nth", F.row_number().over(rows)).where("nth = 1").drop("row", "nth")
