"""Keys of objects as people and programs choose them."""

from hypothesis import strategies as st

from asya.protocol.data_references import KEY_LIMIT, is_below_bucket

_PARTS = st.sampled_from(
    ["..", ".", "", " ", "*", "?.csv", "[final]", "{a,b}", "%2F", "a+b", "\n", "\0", "\u202f", "😀", "~", "#", ":"]
)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def any_key(prefix: str = "data/") -> st.SearchStrategy[str]:
    """Any key that S3 allows below a prefix, without it."""
    parts = st.lists(_PARTS | _TEXTS, min_size=1, max_size=6)
    longest = st.integers(300, KEY_LIMIT - len(prefix)).map(lambda size: "x" * size)
    joined = st.builds(lambda items, glue: glue.join(items), parts, st.sampled_from(["/", ""]))
    keys = st.one_of(_TEXTS, joined, joined, longest)
    return keys.filter(lambda key: 0 < len(key.encode()) <= KEY_LIMIT - len(prefix) and is_below_bucket(prefix + key))
