"""The arguments and options that the subcommands of `asya job` share."""

from __future__ import annotations

from typing import Annotated

import typer

RunId = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The run id from an error, a task or the list, such as asya.….0000000001.",
        show_default=False,
    ),
]
VcpuPrice = Annotated[
    float | None,
    typer.Option(
        "--vcpu-price", min=0, help="Dollars per vCPU-hour instead of the list price of us-east-1.", show_default=False
    ),
]
MemoryPrice = Annotated[
    float | None,
    typer.Option(
        "--memory-price", min=0, help="Dollars per GB-hour instead of the list price of us-east-1.", show_default=False
    ),
]
