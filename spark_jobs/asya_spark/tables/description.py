"""What a folder of Parquet files is as a table: its columns, its partitions, its layout (`protocol §10.tables`).

    {table}/_asya/table/{number}.json    written if it is absent; the last number counts

A description is believed in columns alone. A type of Python's own (UDT) names a class, or has it as a pickle, which runs when the
type is read: a description has those of Spark alone (`protocol §10.tables.records`).

Parquet files know nothing of each other: a file with another type of a column makes later reads fail, and one with other columns
hides some. So each write is compared with the table before anything is staged.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from asya_spark.tables.errors import TableError
from asya_spark.tables.records import FOLDER, KINDS, Layout, numbers_in, read_json, refuse
from asya_spark.tables.replacements import Table

Evolve = Literal["add"]
_SPARKS_OWN = frozenset(
    f"pyspark.{package}.linalg.{kind}UDT" for package in ("ml", "mllib") for kind in ("Vector", "Matrix")
)
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_REAL = ("float", "double")


@dataclass(frozen=True)
class Description:
    """A table.

    Attributes:
        columns: all columns, also those of the partitions.
        partitions: the columns that are folders; in a versioned table, those that name a partition.
        replaced_by: the columns of `where` of its replacements; None before the first one.
    """

    columns: T.StructType
    partitions: tuple[str, ...]
    replaced_by: tuple[str, ...] | None
    layout: Layout

    @classmethod
    def decode(cls, content: bytes, uri: str) -> "Description":
        """Reads a description.

        Raises:
            TableError: it is none, or has a type that runs code.
        """

        def read(fields: Any) -> Description:
            if named := class_of(fields["columns"]):
                refuse(uri, f"a column has a type of the class {named:.200}, and reading it would run its code")
            partitions, replaced_by, layout = fields["partitions"], fields["replaced_by"], fields["layout"]
            texts = [*partitions, *(replaced_by or ())]
            if layout not in KINDS or not all(isinstance(text, str) for text in texts):
                refuse(uri, "its layout or its partitions are none of a table")
            return cls(
                T.StructType.fromJson(fields["columns"]),
                tuple(partitions),
                None if replaced_by is None else tuple(replaced_by),
                layout,
            )

        described: Description = read_json(content, uri, read)
        return described

    def encode(self) -> bytes:
        """The line of JSON."""
        fields = {
            "columns": self.columns.jsonValue(),
            "partitions": self.partitions,
            "replaced_by": self.replaced_by,
            "layout": self.layout,
        }
        return json.dumps(fields).encode("ascii")


@dataclass(frozen=True)
class Write:
    """What a call is about to write.

    Attributes:
        columns: of the frame.
        replaced_by: the columns of `where`; None for an append.
        evolve: `add` if it may add columns.
    """

    columns: T.StructType
    partitions: tuple[str, ...]
    replaced_by: tuple[str, ...] | None
    layout: Layout
    evolve: Evolve | None


def settle(table: Table, write: Write, found: Description | None) -> Description:
    """Compares a write with a table, and describes the table anew if the write is its first or adds columns.

    Args:
        found: what the files of a table tell that nobody has described; None if there are none.

    Raises:
        TableError: the write would break the table; the message names all columns that differ.
    """
    while True:
        number = _last_number(table)
        described = _numbered(table, number)
        wanted = agreed(described or found, write, table.uri)
        if wanted == described:
            return wanted
        if table.commits.create(_uri(table, number + 1), wanted.encode()):
            return wanted


def latest(table: Table) -> Description | None:
    """The description that counts; None if nobody has described the table.

    Raises:
        TableError: no call has written it.
    """
    return _numbered(table, _last_number(table))


def _last_number(table: Table) -> int:
    folder = f"{table.uri}/{FOLDER}/table"
    return numbers_in(folder, table.commits.names(folder), of_partitions=False).get("", 0)


def _numbered(table: Table, number: int) -> Description | None:
    if number == 0:
        return None
    uri = _uri(table, number)
    content = table.commits.read(uri)
    if content is None:
        raise TableError(f"{uri} is gone; nobody may remove it while jobs run")
    return Description.decode(content, uri)


def _uri(table: Table, number: int) -> str:
    return f"{table.uri}/{FOLDER}/table/{number:06d}.json"


def class_of(columns: Any) -> str | None:
    """The class that a type in the JSON of columns names, which is none of Spark's own; None without one."""
    left = [columns]
    while left:
        found = left.pop()
        if isinstance(found, list):
            left += found
        elif isinstance(found, dict):
            named = found.get("pyClass")
            if found.get("type") == "udt" and (named not in _SPARKS_OWN or "serializedClass" in found):
                return str(named or found.get("class"))
            left += found.values()
    return None


def agreed(described: Description | None, write: Write, name: str) -> Description:
    """The table after a write.

    Raises:
        TableError: the write would break the table.
    """
    twins = [column for column in write.columns.names if _names(write.columns).count(column.lower()) > 1]
    if twins:
        raise TableError(f"{name}: the frame has several columns {twins[0]!r}; rename all but one")
    if named := class_of(write.columns.jsonValue()):
        raise TableError(
            f"{name}: the frame has a column of the class {named}, and a reader would run its code; write its fields as columns "
            "of Spark's types"
        )
    if described is None:
        return Description(_nullable(write.columns), write.partitions, write.replaced_by, write.layout)
    if described.layout != write.layout:
        raise TableError(
            f"{name} is a {described.layout} table, and this call writes a {write.layout} one. "
            + (
                "Replace its partitions with layout='versioned'; append_once does not write such a table"
                if described.layout == "versioned"
                else "Leave layout out, or choose another folder"
            )
        )
    if described.partitions != write.partitions:
        raise TableError(
            f"{name} has the partitions {list(described.partitions)}, and this call writes {list(write.partitions)}; "
            "a folder with both could not be read"
        )
    replaced_by = described.replaced_by
    if write.replaced_by is not None:
        if replaced_by is not None and replaced_by != write.replaced_by:
            raise TableError(
                f"{name} is replaced by {list(replaced_by)}, and this call replaces by {list(write.replaced_by)}: "
                "their order would be open where both meet. Name the same columns in where"
            )
        replaced_by = write.replaced_by
    return replace(described, columns=_merged(described.columns, write, name), replaced_by=replaced_by)


def _merged(columns: T.StructType, write: Write, name: str) -> T.StructType:
    """The columns of the table after a write, which may add some."""
    known = {field.name.lower(): field for field in columns}
    added, problems = [], []
    for field in write.columns:
        column = known.get(field.name.lower())
        if column is None and write.evolve == "add":
            added.append(field)
        elif column is None:
            problems.append(f"the table has no column {field.name!r} ({_type(field)}); allow it with evolve='add'")
        elif column.name != field.name:
            problems.append(f"the frame has {field.name!r}, and the table {column.name!r}; rename the column")
        elif _type(column) != _type(field) and not (write.evolve == "add" and widens(field.dataType, column.dataType)):
            problems.append(
                f"{field.name!r} is {_type(field)} in the frame, and {_type(column)} in the table; "
                f'cast it: frame.withColumn("{field.name}", F.col("{field.name}").cast("{_type(column)}"))'
            )
    if write.evolve != "add":
        missing = [field for field in columns if field.name.lower() not in _names(write.columns)]
        problems += [
            f"the frame has no column {field.name!r} ({_type(field)}); fill it with evolve='add'" for field in missing
        ]
    if problems:
        raise TableError(f"{name}: the rows would break the table, and nothing is written. " + ". ".join(problems))
    return T.StructType([*columns, *_nullable(T.StructType(added))])


def shaped(frame: DataFrame, columns: T.StructType) -> DataFrame:
    """The frame with the columns of its table, in their order: narrower numbers are cast, missing columns are null."""
    own = {field.name: field.dataType for field in frame.schema}

    def column(field: T.StructField) -> Any:
        if field.name not in own:
            return F.lit(None).cast(field.dataType).alias(field.name)
        quoted = F.col(f"`{field.name.replace('`', '``')}`")
        same = own[field.name].simpleString() == field.dataType.simpleString()
        return quoted if same else quoted.cast(field.dataType).alias(field.name)

    return frame.select(*map(column, columns))


def widens(narrow: T.DataType, wide: T.DataType) -> bool:
    """Whether each value of a type is a value of the other one."""
    if isinstance(narrow, T.DecimalType) and isinstance(wide, T.DecimalType):
        return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
    return any(
        narrow.simpleString() in kinds[: kinds.index(wide.simpleString())]
        for kinds in (_WHOLE, _REAL)
        if wide.simpleString() in kinds
    )


def found_partitions(name: str) -> tuple[str, ...]:
    """The columns that are folders in the name of a file, relative to its table."""
    folders = [part for part in name.split("/")[:-1] if "=" in part]
    return tuple(unquote(folder.partition("=")[0]) for folder in folders)


def _type(field: T.StructField) -> str:
    return field.dataType.simpleString()


def _names(columns: T.StructType) -> list[str]:
    return [name.lower() for name in columns.names]


def _nullable(columns: T.StructType) -> T.StructType:
    """Files are read with nulls where they lack a column."""
    return T.StructType([T.StructField(field.name, field.dataType, nullable=True) for field in columns])
