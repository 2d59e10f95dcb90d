"""Releases what the tracebacks of kept errors refer to."""

from types import FrameType


def release_locals(error: BaseException | None) -> None:
    """Clear the local variables of the finished functions in the traceback of an error and of its causes.

    They may hold large envelopes. The log still shows the lines.
    """
    done: set[int] = set()
    while error is not None and id(error) not in done:
        done.add(id(error))
        trace = error.__traceback__
        while trace is not None:
            _clear_with_callers(trace.tb_frame)
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def _clear_with_callers(frame: FrameType | None) -> None:
    """Clear a frame and its callers up to the first one that still runs."""
    while frame is not None:
        try:
            frame.clear()
        except RuntimeError:  # it still runs
            return
        frame = frame.f_back
