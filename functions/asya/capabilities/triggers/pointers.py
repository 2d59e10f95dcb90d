"""Finds the part of a value that a JSON pointer names (`input` of a trigger)."""

from asya.protocol.json_pointer import parts


def part_at(value: object, pointer: str) -> object:
    """The part of a value that a pointer names.

    Raises:
        ValueError: the value has no such part.
    """
    for part in parts(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and str(int(part)) == part and int(part) < len(value):
            value = value[int(part)]
        else:
            raise ValueError(f"there is no {pointer} in it: {part!r} is missing")
    return value
