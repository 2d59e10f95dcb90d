"""The stamps in the bucket of the mesh."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

_COUNTS = "stamp-counts.json"


@dataclass(frozen=True)
class Stamps:
    """The stamps of all actors."""

    s3: Any
    bucket: str

    def add(self, actor: str, envelope: str, copy: int, ink: str) -> None:
        """Write one stamp. A repeated delivery writes the same one again."""
        self.s3.put_object(Bucket=self.bucket, Key=f"stamps/{actor}/{envelope}-{copy}", Body=ink.encode())

    def count(self) -> dict[str, int]:
        """Count the stamps of each actor, and write the counts."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix="stamps/")
        counts = Counter(each["Key"].split("/")[1] for page in pages for each in page.get("Contents", ()))
        self.s3.put_object(Bucket=self.bucket, Key=_COUNTS, Body=json.dumps(counts).encode())
        return dict(counts)

    def counts(self) -> dict[str, int]:
        """Read the counts; empty before the first sweep."""
        try:
            content: dict[str, int] = json.loads(
                self.s3.get_object(Bucket=self.bucket, Key=_COUNTS)["Body"].read().decode()
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            return {}
        return content
