"""The part of an actor's `access` that belongs to the tenant of a run (`protocol §10.isolation.access`)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asya.protocol.keys import S3Prefix
from asya.protocol.mesh_table import Access

TENANT = "{tenant}"
"""The folder in a pattern that is the name of the run's tenant."""

LONGEST_NAME = 64
# No wildcard or variable of IAM, no slash, and nothing that a file system takes for another folder.
_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.@=-]{{0,{LONGEST_NAME - 1}}}")
_CLAIM = "claim:"


@dataclass(frozen=True, slots=True)
class TenantKeys:
    """Patterns of S3 keys, as `bucket/key`; what may be written may be read too."""

    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


def is_of_tenant(patterns: Iterable[str]) -> bool:
    """Whether any of these patterns belongs to one tenant."""
    return any(TENANT in pattern for pattern in patterns)


def folder_name(tenant: str) -> str | None:
    """The name of a tenant in keys: the value of its claim; None for every other tenant, and for a value that cannot be a name.

    Any other mapping could give two tenants one name. The last `#` separates the value and the issuer (`protocol §13.tenant`).
    """
    claim, hash_sign, _issuer = tenant.rpartition("#")
    value = claim.removeprefix(_CLAIM)
    return value if hash_sign and claim != value and _NAME.fullmatch(value) else None


def tenant_keys(access: Sequence[Access], name: str, *, data: S3Prefix, results: S3Prefix) -> TenantKeys:
    """The keys of a tenant with this name that the entries grant."""
    read: list[str] = []
    written: list[str] = []
    own = {"data": data, "results": results}
    for entry in access:
        if entry.kind != "bucket":
            continue
        place = own.get(entry.name, S3Prefix(entry.name, ""))
        for patterns, keys in ((entry.read, read), (entry.write, written)):
            for pattern in patterns:
                if TENANT in pattern:
                    keys.extend(with_folder(f"{place.bucket}/{place.prefix}{pattern.replace(TENANT, name)}"))
    return TenantKeys(tuple(key for key in read if key not in written), tuple(written))


def with_folder(pattern: str) -> tuple[str, ...]:
    """A pattern and, for `raw/*`, the folder `raw`. `raw/` needs no entry, because `*` may be empty."""
    folder = pattern.removesuffix("/*")
    return (pattern,) if folder in {pattern, ""} else (folder, pattern)
