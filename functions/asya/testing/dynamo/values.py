"""DynamoDB values: comparison, arithmetic and document paths, as strict as AWS, also in its limits."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

Value = Mapping[str, Any]
Item = Mapping[str, Value]
Path = tuple[str | int, ...]

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


class ExpressionError(ValueError):
    """An invalid request; AWS answers it with a ValidationException."""


def kind_of(value: Value) -> str:
    """Return the type descriptor, such as S, N or B."""
    if len(value) != 1:
        raise ExpressionError("Supplied AttributeValue has more than one or no datatypes set")
    return next(iter(value))


def plain(value: Value) -> Any:
    """Convert a value to a Python value that compares as in DynamoDB, among values of its type."""
    kind = kind_of(value)
    content = value[kind]
    match kind:
        case "N":
            return Decimal(content)
        case "NS":
            return frozenset(map(Decimal, content))
        case "SS" | "BS":
            return frozenset(content)
        case "L":
            return [(kind_of(one), plain(one)) for one in content]
        case "M":
            return {name: (kind_of(one), plain(one)) for name, one in content.items()}
        case _:
            return content


def lookup(item: Item, path: Path) -> Value | None:
    """Return the value at a document path, or None."""
    value: Value | None = item.get(str(path[0]))
    for part in path[1:]:
        if value is None:
            return None
        if isinstance(part, int):
            members = value.get("L", [])
            value = members[part] if part < len(members) else None
        else:
            value = value.get("M", {}).get(part)
    return value


def compare(sign: str, left: Value | None, right: Value | None) -> bool:
    """Compare two values; a missing value equals no value."""
    if left is None or right is None:
        return False
    if kind_of(left) != kind_of(right):
        return sign == "<>"
    if sign not in ("=", "<>") and kind_of(left) not in ("S", "N", "B"):
        raise ExpressionError(f"Incorrect operand type for operator or function; operator: {sign}")
    return COMPARISONS[sign](plain(left), plain(right))


def begins_with(value: Value | None, start: Value | None) -> bool:
    """The function `begins_with`."""
    if value is None or start is None or kind_of(value) != kind_of(start):
        return False
    return bool(plain(value).startswith(plain(start)))


def contains(value: Value | None, member: Value | None) -> bool:
    """The function `contains`."""
    if value is None or member is None:
        return False
    kind = kind_of(value)
    if kind == "L":
        return (kind_of(member), plain(member)) in plain(value)
    if kind == "S":
        return kind_of(member) == "S" and member["S"] in value["S"]
    return kind == kind_of(member) + "S" and plain(member) in plain(value)


def size(value: Value | None) -> Value | None:
    """The function `size`."""
    return None if value is None else {"N": str(len(plain(value)))}


def required(value: Value | None) -> Value:
    """Raise an error for a missing value."""
    if value is None:
        raise ExpressionError("The provided expression refers to an attribute that does not exist in the item")
    return value


def arithmetic(sign: str, left: Value | None, right: Value | None) -> Value:
    """Add or subtract two numbers."""
    one, other = Decimal(required(left)["N"]), Decimal(required(right)["N"])
    return {"N": str(one + other if sign == "+" else one - other)}


def add(present: Value | None, value: Value) -> Value:
    """The clause ADD: add to a number or a set."""
    kind = kind_of(value)
    if present is None:
        return value
    if kind_of(present) != kind:
        raise ExpressionError("An operand in the update expression has an incorrect data type")
    if kind == "N":
        return {"N": str(Decimal(present["N"]) + Decimal(value["N"]))}
    return {kind: list(dict.fromkeys([*present[kind], *value[kind]]))}


def subtract(present: Value | None, value: Value) -> Value | None:
    """The clause DELETE: remove members of a set; None if none are left."""
    kind = kind_of(value)
    if present is None:
        return None
    if kind_of(present) != kind:
        raise ExpressionError("An operand in the update expression has an incorrect data type")
    left = [one for one in present[kind] if one not in value[kind]]
    return {kind: left} if left else None


def assign(item: dict[str, Any], path: Path, value: Value) -> None:
    """Set the value at a document path."""
    holder, last = _parent(item, path)
    if isinstance(last, int):
        if last < len(holder):
            holder[last] = value
        else:
            holder.append(value)
    else:
        holder[last] = value


def remove(item: dict[str, Any], path: Path) -> None:
    """Remove the value at a document path, if it exists."""
    try:
        holder, last = _parent(item, path)
    except ExpressionError:
        return
    if isinstance(last, int):
        if last < len(holder):
            del holder[last]
    else:
        holder.pop(last, None)


def _parent(item: dict[str, Any], path: Path) -> tuple[Any, str | int]:
    holder: Any = item
    for number, part in enumerate(path[:-1]):
        inner = "L" if isinstance(path[number + 1], int) else "M"
        try:
            holder = holder[part][inner]
        except (KeyError, IndexError, TypeError):
            raise ExpressionError("The document path provided in the update expression is invalid for update") from None
    return holder, path[-1]


def copied_value(value: Any) -> Any:
    """A copy that shares nothing with the value."""
    if isinstance(value, Mapping):
        return {name: copied_value(one) for name, one in value.items()}
    return [copied_value(one) for one in value] if isinstance(value, list) else value


ITEM_LIMIT = 400 * 1024
Key = tuple[Any, Any]


def item_key(item: Item, *, exact: bool = False) -> Key:
    """Return the key of an item; `exact` allows no other attributes."""
    parts = []
    for name in ("pk", "sk"):
        value = item.get(name)
        if value is None or kind_of(value) != "S":
            raise ExpressionError(f"One or more parameter values were invalid: Missing the key {name} in the item")
        if not value["S"]:
            raise ExpressionError(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
                f"empty string value. Key: {name}"
            )
        if len(value["S"].encode()) > {"pk": 2048, "sk": 1024}[name]:
            raise ExpressionError(f"Size of {name} has exceeded the maximum size limit")
        parts.append(value["S"])
    if exact and set(item) != {"pk", "sk"}:
        raise ExpressionError("The provided key element does not match the schema")
    return parts[0], parts[1]


def check_item(item: Item) -> None:
    """Check the values and the size of an item."""
    for value in item.values():
        plain(value)
        if kind_of(value) in ("NS", "SS", "BS") and not value[kind_of(value)]:
            raise ExpressionError("One or more parameter values were invalid: An number set  may not be empty")
    if item_bytes(item) > ITEM_LIMIT:
        raise ExpressionError("Item size has exceeded the maximum allowed size")


def item_bytes(item: Item) -> int:
    """The size of an item as DynamoDB counts it."""
    return sum(len(name.encode()) + _bytes_of(value) for name, value in item.items())


def _bytes_of(value: Value) -> int:
    kind = kind_of(value)
    content = value[kind]
    match kind:
        case "S" | "N":
            return len(content.encode())
        case "B":
            return len(content)
        case "M":
            return 3 + sum([len(name.encode()) + 1 + _bytes_of(one) for name, one in content.items()])
        case "L":
            return 3 + sum([1 + _bytes_of(one) for one in content])
        case "SS" | "NS" | "BS":
            return 3 + sum([1 + len(one) for one in content])
        case _:
            return 1


def check_batch_size(sizes: list[int], limit: int) -> None:
    """Check the number of items in a batch."""
    if not 1 <= sum(sizes) <= limit:
        raise ExpressionError(f"1 validation error detected: {sum(sizes)} items; 1 to {limit} are possible")


def check_distinct(keys: Sequence[Any]) -> None:
    """Check that no key occurs twice."""
    if len(set(keys)) < len(keys):
        raise ExpressionError("Provided list of item keys contains duplicates")


def check_key_condition(conditions: list[tuple[str, str, list[Value]]], partition: str, sort: str | None) -> None:
    """Check that a key condition fixes the partition key and limits only the sort key."""
    names = [name for name, _, _ in conditions]
    if names.count(partition) != 1 or (partition, "=") not in [(name, sign) for name, sign, _ in conditions]:
        raise ExpressionError("Query condition missed key schema element")
    if len(names) > 2 or any(name not in (partition, sort) for name in names):
        raise ExpressionError("Query key condition not supported")
