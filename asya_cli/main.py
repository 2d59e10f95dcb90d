"""The entry point of the `asya` command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError  # typer exports UsageError's children only

from asya.client.defaults import read_defaults
from asya.client.errors import MeshError
from asya_cli.actors import actors
from asya_cli.backfill.command import app as backfill
from asya_cli.console.command import ui
from asya_cli.contracts.command import contracts
from asya_cli.cost import cost
from asya_cli.data import app as data
from asya_cli.demo.command import demo
from asya_cli.deployment import cdk, deploy, destroy, diff
from asya_cli.dev import dev
from asya_cli.dlq.command import app as dlq
from asya_cli.doctor import doctor
from asya_cli.errors import INTERRUPTED, ExitCode, exit_code_of
from asya_cli.job.command import app as job
from asya_cli.local import app as local
from asya_cli.logs import logs
from asya_cli.mesh_file.graph import graph
from asya_cli.mesh_file.validate import schema, validate
from asya_cli.options import default_map, takes_defaults
from asya_cli.output.text import echo, end_output, open_streams, wrap_at_the_terminal
from asya_cli.own_commands import WithOwnCommands
from asya_cli.report.command import report
from asya_cli.run.command import run
from asya_cli.scaffold.init import init
from asya_cli.scaffold.new import app as new
from asya_cli.sending.call import call
from asya_cli.sending.send import send
from asya_cli.smoke.command import smoke
from asya_cli.tasks.cancel import cancel
from asya_cli.tasks.dismiss import dismiss
from asya_cli.tasks.failures import failures
from asya_cli.tasks.listing import list_tasks
from asya_cli.tasks.replay import replay
from asya_cli.tasks.result import result
from asya_cli.tasks.resume import resume
from asya_cli.tasks.status import status
from asya_cli.triggers.command import app as trigger
from asya_infra.build.folder import CacheError
from asya_local.errors import LocalCloudError


class Asya(typer.Typer):
    """The command. A failure prints the problem and the advice, and exits with its code."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        open_streams()
        try:
            code = super().__call__(*args, **{**kwargs, "standalone_mode": False})
            sys.stdout.flush()  # an error at the exit of the interpreter would have no message
        except MeshError as error:
            code = exit_code_of(error)
            _print_error(error.problem, error.advice or (_ADVICE if code is ExitCode.UNREACHABLE else ""))
            sys.exit(code)
        except LocalCloudError as error:
            _print_error(error.message, error.detail)
            sys.exit(ExitCode.COMMAND_FAILED)
        except CacheError as error:
            _print_error(str(error), "")
            sys.exit(ExitCode.COMMAND_FAILED)
        except NoArgsIsHelpError as error:  # a group without a command: its help is printed
            echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        except ClickException as error:
            _print_error(*_usage(error))
            sys.exit(error.exit_code)
        except typer.Abort as error:  # a question without an answer
            is_interrupted = isinstance(error.__context__, KeyboardInterrupt)
            _print_error("nothing was changed", "" if is_interrupted else "Give --yes where nobody can answer.")
            sys.exit(INTERRUPTED if is_interrupted else ExitCode.COMMAND_FAILED)
        except OSError as error:
            if problem := end_output(error):
                _print_error(problem, "Make room there, or write elsewhere.")
            sys.exit(ExitCode.COMMAND_FAILED)
        sys.exit(code if isinstance(code, int) else ExitCode.DONE)


_ADVICE = "Is it running? `asya local status` shows a local cloud; on AWS check --namespace, --region and the network."


def _usage(error: ClickException) -> tuple[str, str]:
    """Return the problem and the advice of a wrong option or argument."""
    problem = error.format_message().replace("Value error, ", "").strip().removesuffix(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "asya"
    return problem[:1].lower() + problem[1:], f"`{command} --help` shows what it takes."


def _print_error(problem: str, advice: str) -> None:
    echo(f"asya: {problem}", err=True, color="red")
    if advice:
        echo(advice, err=True)


app = Asya(
    cls=WithOwnCommands,
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Run a mesh of actors on this machine, send envelopes to a mesh, and operate it.",
)


@app.callback()
def asya(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Run a mesh of actors on this machine, send envelopes to a mesh, and operate it."""
    if version:
        from importlib.metadata import version as version_of

        echo(version_of("asya-mesh"))
        raise typer.Exit
    if takes_defaults(context.command, context.invoked_subcommand, sys.argv[1:]):
        context.default_map = default_map(context.command, read_defaults(sys.argv[1:], os.environ, Path.cwd()))


app.command()(init)
app.add_typer(new, name="new")
app.command()(demo)
app.command()(dev)
app.command()(run)
app.command()(send)
app.command()(call)
app.command()(status)
app.command()(result)
app.command("list")(list_tasks)
app.command()(failures)
app.command()(actors)
app.command()(ui)
app.command()(cancel)
app.command()(replay)
app.command()(dismiss)
app.command()(resume)
app.command()(report)
app.command()(logs)
app.command()(validate)
app.command()(graph)
app.command()(schema)
app.command()(deploy)
app.command()(diff)
app.command()(cost)
app.command()(destroy)
app.command()(cdk)
app.command()(doctor)
app.command()(contracts)
app.command()(smoke)
app.add_typer(data, name="data")
app.add_typer(dlq, name="dlq")
app.add_typer(job, name="job")
app.add_typer(trigger, name="trigger")
app.add_typer(backfill, name="backfill")
app.add_typer(local, name="local")
wrap_at_the_terminal(app)


if __name__ == "__main__":
    app()
