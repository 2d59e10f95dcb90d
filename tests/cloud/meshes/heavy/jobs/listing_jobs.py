"""A job that lists data with the credentials of its run, and reads the listed files with Spark."""

from asya_spark import data


def lists(spark, payload):
    return {prefix: _lines(spark, prefix) for prefix in payload["prefixes"]}


def _lines(spark, prefix):
    """The lines of each file, or the error."""
    try:
        references = [file.reference for file in data.list(prefix, suffix=".txt")]
    except PermissionError as error:
        return str(error)
    return {each: spark.read.text(data.uri(each)).count() for each in references}
