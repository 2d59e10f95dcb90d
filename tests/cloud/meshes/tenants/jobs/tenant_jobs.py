"""A job that says which process it runs in, and reads and writes what its payload names."""

from urllib.parse import urlsplit
from uuid import uuid4

from asya_spark import data

# A job run imports this module once.
PROCESS = uuid4().hex


def look(spark, payload):
    found = {"process": PROCESS}
    if "lines" in payload:
        found["lines"] = [row.value for row in spark.read.text(data.uri(payload["lines"])).collect()]
    if "rows" in payload:
        spark.range(3).write.parquet(data.uri(payload["rows"], write=True))
    if "keys" in payload:
        found["answers"] = {key: _answer(data.uri(key)) for key in payload["keys"]}
    return found


def _answer(uri):
    import boto3  # the driver of a run that lingers has it
    from botocore.exceptions import ClientError

    place = urlsplit(uri)
    try:
        boto3.client("s3").get_object(Bucket=place.netloc, Key=place.path.lstrip("/"))
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
    return 200
