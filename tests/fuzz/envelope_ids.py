"""Generated ids of envelopes: those that a sender may choose, and those that no envelope may have (`protocol §1.id.characters`)."""

from hypothesis import strategies as st

REFUSED_CHARACTERS = "/\\?#%\n\r\t\0\x1f\x7f\x85\x9f\u2028\u2029"
SELECTED = (
    *(
        "t-1",
        "events",
        "redrive",
        "order 7",
        "é",
        "e\u0301",
        "日本",
        "🛫",
        "x+y",
        "a.b",
        "...",
        "~",
        "a:b",
        "x:cancel",
        "a&b=c;d",
    ),
    *(
        "2026-11-29T09:00:00.5Z",
        "'a'",
        '"a"',
        "$(a)",
        "`a`",
        "{id}",
        "a,b",
        "<b>",
        "*",
        "a|b",
        " a ",
        "_-",
        "a\u200bb",
        "\ufffd",
    ),
)
"""Ids with a meaning to some reader of paths, queries and commands, or of more bytes than characters."""
USABLE = st.sampled_from(SELECTED) | st.text(
    st.characters(exclude_characters=REFUSED_CHARACTERS, exclude_categories=("Cs", "Cc")), min_size=1, max_size=16
).filter(lambda text: text not in (".", "..", "OUTAGE") and not text.startswith("-"))
REFUSED_EXAMPLES = (
    *(
        "w/x",
        "/w",
        "w/",
        "a/../b",
        "//",
        "../../../x",
        ".",
        "..",
        "a\nb",
        "a\\b",
        "a?b",
        "a#b",
        "KEY#a",
        "a%2Fb",
        "100%",
    ),
    *("\0", "a\x7f", "a\x85b", "a\u2028b", "-", "--yes", "-x", "OUTAGE"),
)
"""Ids that a route, a link, a command or a table takes for something else."""
REFUSED = st.sampled_from(REFUSED_EXAMPLES) | st.builds(
    lambda before, character, after: before + character + after,
    st.text(max_size=5),
    st.sampled_from(REFUSED_CHARACTERS) | st.characters(categories=("Cc",)),
    st.text(max_size=5),
)
