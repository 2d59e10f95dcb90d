"""The records of a table of folders, and what one may say (`protocol §10.tables.records`).

Whoever writes the table writes its records too, and each call moves and removes files with its own permissions. So a record is
compared with its name and with the table before anything follows from it: it names files of this table alone.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NoReturn
from urllib.parse import urlsplit

from asya_spark.tables.errors import TableError

FOLDER = "_asya"
"""The folder of a table that has its records; readers pass over it, because its name begins with an underscore."""
Layout = Literal["plain", "versioned"]
KINDS: Mapping[Layout, str] = {"plain": "staging", "versioned": "versions"}
"""The folder below `_asya` that has the files of attempts."""
_KEY = re.compile(r"[0-9a-f]{32}")
_ATTEMPT = re.compile(r"[0-9a-f]{12}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_NUMBER = re.compile(r"(?:(?P<partition>[0-9a-f]{32})-)?(?P<number>[0-9]{6,})\.json")
# Spark escapes these characters in names of folders, and `%` in front of what it has escaped.
_TEXT = r"[^/=\x00-\x1f\x7f\"#'*:?\\{\[\]^]"
_PARTITION = re.compile(rf"(?!\.){_TEXT}+={_TEXT}+")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.parquet")


@dataclass(frozen=True)
class Commit:
    """What a call has committed, one line of JSON.

    Attributes:
        key: identifies the call.
        partition: its folder in the table, such as `day=2026-01-01`; empty for an append.
        folder: the URI that has the files.
        files: relative to the folder.
        rows: as many as Spark has written.
        after: the last number of the partition before this commit; the call takes a later one.
        at: when it was committed, RFC 3339.
        call: the envelope that wrote it: `id`, `parent_id`, `generation`, `actor`, `position`, `attempt`, `run`.
    """

    key: str
    partition: str
    folder: str
    files: tuple[str, ...]
    rows: int
    after: int = 0
    at: str = ""
    call: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def decode(cls, content: bytes, uri: str, table: str, layout: Layout, key: str) -> "Commit":
        """Reads the commit of a call of a table.

        Raises:
            TableError: it names files that no attempt at this call can have written.
        """
        found = _fields(cls, content, uri)
        expect(found["key"] == key, uri, f"its key is {found['key']!r:.100}, and its name has another one")
        partition, files = found["partition"], _texts(found["files"], "files", uri)
        expect(isinstance(partition, str), uri, f"its partition is {partition!r:.100}")
        expect(
            not partition or _is_partition(partition), uri, f"its partition {partition!r:.200} is no folder of a table"
        )
        if layout == "versioned":
            expect(partition, uri, "it names no partition, and the table is versioned")
        for name in files:
            folders, slash, file = name.rpartition("/")
            inner = (
                not slash if layout == "versioned" else bool(slash) == bool(folders) and _is_below(folders, partition)
            )
            expect(
                _FILE.fullmatch(file) and inner,
                uri,
                f"its file {name!r:.200} is none that a call for {partition!r:.200} writes",
            )
        expect(len(set(files)) == len(files), uri, "it names a file twice")
        for number in ("rows", "after"):
            value = found.get(number, 0)
            expect(type(value) is int and value >= 0, uri, f"its {number} is {value!r:.100}")
        expect(isinstance(found.get("call", {}), dict), uri, "its call is no object")
        if found.get("at", "") != "":
            _check_time(found["at"], uri)
        # Only the last part of the folder is taken from the record.
        beginning = f"/{FOLDER}/{KINDS[layout]}/{key}/"
        folder = found["folder"]
        place, _, attempt = folder.rpartition(beginning) if isinstance(folder, str) else ("", "", "")
        expect(
            _ATTEMPT.fullmatch(attempt) and _place(place) == _place(table),
            uri,
            f"its folder {folder!r:.200} is none of an attempt at this call, {table}{beginning}…",
        )
        return cls(**{**found, "files": files, "folder": f"{table}{beginning}{attempt}"})

    def encode(self) -> bytes:
        """The line of JSON."""
        return json.dumps(asdict(self)).encode("ascii")


@dataclass(frozen=True)
class Entry:
    """A number of a partition.

    Attributes:
        partition: as of the commit.
        key: the call that has this number.
        others: the files of other writers that the partition had, relative to it.
        at: when the number was taken, RFC 3339.
    """

    partition: str
    key: str
    others: tuple[str, ...]
    at: str

    @classmethod
    def decode(cls, content: bytes, uri: str) -> "Entry":
        """Reads an entry.

        Raises:
            TableError: it is none of the partition in its name, or names files outside of it.
        """
        found = _fields(cls, content, uri)
        partition, key, others = found["partition"], found["key"], _texts(found["others"], "others", uri)
        expect(
            isinstance(partition, str) and _is_partition(partition),
            uri,
            f"its partition {partition!r:.200} is no folder of a table",
        )
        named = uri.rpartition("/")[2].partition("-")[0]
        expect(
            partition_name(partition) == named, uri, f"its name is that of another partition than {partition!r:.200}"
        )
        expect(isinstance(key, str) and _KEY.fullmatch(key), uri, f"its key {key!r:.100} is none of a call")
        for name in others:
            expect(is_inside(name), uri, f"its file {name!r:.200} is outside of the partition")
        _check_time(found["at"], uri)
        return cls(partition, key, others, found["at"])

    def encode(self) -> bytes:
        """The line of JSON."""
        return json.dumps(asdict(self)).encode("ascii")


def partition_name(partition: str) -> str:
    """The beginning of the names of the entries of a partition."""
    return hashlib.sha256(partition.encode(errors="surrogatepass")).hexdigest()[:32]


def numbers_in(folder: str, names: Iterable[str], *, of_partitions: bool) -> dict[str, int]:
    """The last number of each partition, by the beginning of its names; `""` has those without one.

    They are compared as numbers: the name of 1000000 comes before that of 999999.

    Raises:
        TableError: a name is none that a call writes.
    """
    last: dict[str, int] = {}
    for name in names:
        match = _NUMBER.fullmatch(name)
        partition, number = (match["partition"] or "", int(match["number"])) if match else ("", 0)
        if bool(partition) != of_partitions or number < 1 or f"{number:06d}.json" != name.rpartition("-")[2]:
            refuse(f"{folder}/{name}", "its name has no number as calls write it")
        last[partition] = max(number, last.get(partition, 0))
    return last


def is_inside(name: str) -> bool:
    """Whether a relative name is that of a file below its folder, whoever has written it."""
    return all(part not in ("", ".", "..", FOLDER) for part in name.split("/")) and "://" not in name


def read_json(content: bytes, uri: str, read: Callable[[Any], Any]) -> Any:
    """What a record has.

    Raises:
        TableError: it cannot be read.
    """
    try:
        return read(json.loads(content))
    except TableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a record makes of its reader, the record is at fault
        refuse(uri, f"it cannot be read ({type(error).__name__}: {str(error)[:200]})", error)


def expect(is_met: object, uri: str, otherwise: str) -> None:
    """Refuses a record unless a condition is met.

    Raises:
        TableError: it is not.
    """
    if not is_met:
        refuse(uri, otherwise)


def refuse(uri: str, why: str, cause: Exception | None = None) -> NoReturn:
    """Refuses a record, and says what to do.

    Raises:
        TableError: always.
    """
    raise TableError(
        f"{uri} is no record that a call has written for this table: {why}. Nothing is moved or removed because of it. "
        "Somebody who may write the table has put it there: find out who, then remove it"
    ) from cause


def _fields(kind: type[Commit] | type[Entry], content: bytes, uri: str) -> dict[str, Any]:
    found = read_json(content, uri, lambda value: value)
    expect(isinstance(found, dict), uri, "it is no object")
    names = {item.name for item in fields(kind)}
    needed = names - {"after", "at", "call"} if kind is Commit else names
    if unknown := sorted(set(found) - names):
        refuse(uri, f"it has the unknown field {unknown[0]!r:.100}")
    if missing := sorted(needed - set(found)):
        refuse(uri, f"it has no {missing[0]}")
    return dict(found)


def _texts(value: Any, name: str, uri: str) -> tuple[str, ...]:
    expect(
        isinstance(value, list) and all(isinstance(item, str) for item in value),
        uri,
        f"its {name} are no list of names",
    )
    return tuple(value)


def _check_time(value: Any, uri: str) -> None:
    expect(isinstance(value, str) and _TIME.fullmatch(value), uri, f"its time is {value!r:.100}")


def _is_partition(text: str) -> bool:
    return all(_PARTITION.fullmatch(part) for part in text.split("/"))


def _is_below(folders: str, partition: str) -> bool:
    """Whether the folders of a file are those of a partition, or folders of columns in it."""
    if folders and not _is_partition(folders):
        return False
    return not partition or f"{folders}/".startswith(f"{partition}/")


def _place(uri: str) -> tuple[str, str, str]:
    """A folder, whichever of Hadoop's names for S3 its URI has."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "", "", uri
    return {"s3a": "s3"}.get(parts.scheme, parts.scheme), parts.netloc, uri.partition("://")[2].partition("/")[2]
