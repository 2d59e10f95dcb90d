"""Durations as people and the seeds of this protocol write them: `5m0s`, `1h30m0s`, `30s`, `500ms`."""


def format_duration(seconds: float) -> str:
    """A duration in the style of the timeout message (`protocol §5.11`); whole milliseconds below a second."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{round(rest, 3):g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
