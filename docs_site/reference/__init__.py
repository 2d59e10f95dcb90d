"""The pages that are generated from code, each time the site is built.

They are not committed: each change of an option, a metric or a key would change a second file, and the site is the only
reader. Tests hold each page to be complete.
"""

from collections.abc import Callable
from dataclasses import dataclass

from docs_site.reference import commands, events, gateway_calls, mesh_file_keys, metrics, python_api


@dataclass(frozen=True)
class GeneratedPage:
    """A page of the section Reference: its title, its path in the site, and what writes its Markdown."""

    title: str
    path: str
    text: Callable[[], str]


PAGES = (
    GeneratedPage("Keys of the mesh file", "reference/generated/mesh-file-keys.md", mesh_file_keys.page),
    GeneratedPage("Commands and options", "reference/generated/commands.md", commands.page),
    GeneratedPage("Calls of the gateway", "reference/generated/gateway-calls.md", gateway_calls.page),
    GeneratedPage("Python API", "reference/generated/python-api.md", python_api.page),
    GeneratedPage("Metrics", "reference/generated/metrics.md", metrics.page),
    GeneratedPage("Events and logs", "reference/generated/events.md", events.page),
)
