"""Patterns of object keys as IAM has them: `*` for any text, `?` for one character, everything else as it is."""


def patterns_of(prefix: str, suffix: str) -> tuple[str, ...]:
    """Return patterns whose keys together are those that begin with `prefix` and end with `suffix`.

    The two may share characters: the key `a.csv` begins with `a.` and ends with `.csv`.
    """
    shared = [prefix + suffix[length:] for length in range(1, len(suffix) + 1) if prefix.endswith(suffix[:length])]
    return (f"{prefix}*{suffix}", *shared)


def intersect(one: str, other: str) -> bool:
    """Whether some key matches both patterns."""
    beginnings = zip(_beginning(one), _beginning(other), strict=False)
    if any(character != expected for character, expected in beginnings):
        return False  # most pairs differ before their first wildcard
    # The places in `other` that a common key may have reached, for each place in `one`.
    places = _past_stars(other, {0})
    for character in one:
        if character == "*":
            places = set(range(min(places), len(other) + 1)) if places else places
            continue
        matched = {
            place if other[place] == "*" else place + 1
            for place in places
            if place < len(other) and (character == "?" or other[place] in ("*", "?", character))
        }
        places = _past_stars(other, matched)
    return len(other) in places


def _beginning(pattern: str) -> str:
    return pattern[: min(pattern.find(each) % (len(pattern) + 1) for each in "*?")]


def _past_stars(pattern: str, places: set[int]) -> set[int]:
    """Return these places, and those after the `*` at each, which may be empty."""
    found = set(places)
    for place in places:
        following = place
        while following < len(pattern) and pattern[following] == "*":
            following += 1
            found.add(following)
    return found
