"""What capabilities keep, as data: the tables of a mesh, and the prefixes of its bucket with the lifetime of their objects.

Every table has the keys `pk` and `sk`, which are texts, and the time to live `asya.protocol.table_keys.EXPIRY`.
"""

from dataclasses import dataclass
from typing import Literal

from asya.needs import Store
from asya.predicates import Predicate, always


@dataclass(frozen=True, kw_only=True)
class Index:
    """A sparse global secondary index.

    Attributes:
        name: Its name.
        partition: The attribute that is its partition key.
        sort: The attribute that is its sort key.
        included: The further attributes that it has; empty for the keys alone.
    """

    name: str
    partition: str
    sort: str
    included: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table. Every mesh has it, whether an actor needs it or not.

    A kept table of a feature that was turned off would block the deployment that turns it on again.

    Attributes:
        name: Its name, without that of the mesh.
        holds: What its items are, as the reference says.
        indexes: Its indexes.
        streams_changes: Whether a function is called with its changes.
    """

    name: str
    holds: str
    indexes: tuple[Index, ...] = ()
    streams_changes: bool = False


@dataclass(frozen=True, kw_only=True)
class Prefix:
    """Objects whose keys begin alike, and expire alike.

    Attributes:
        name: What the keys begin with; empty for all keys of the store.
        holds: What the objects are, as the reference says.
        kept: The setting of `storage.retention` in the mesh file, or a number of days.
        store: The bucket of the mesh, or the prefix of the results.
        exists: Whether objects of a mesh expire so.
    """

    name: str
    holds: str
    kept: Literal["payloads", "runs", "results"] | int
    store: Store = "bucket"
    exists: Predicate = always
