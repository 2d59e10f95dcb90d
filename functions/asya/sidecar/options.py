"""The options of actors about every hop, light or heavy."""

from asya.option import Option

KEEP_INPUT: Option[bool] = Option(
    key="keep_input",
    type=bool,
    default=False,
    text="Whether each input is kept, so that `asya replay` can start at any hop of this actor. "
    "`x-checkpoint` in a route does the same for one place.",
)
