"""The group of commands, each imported only when it is run, and the exit code of every error."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time

_BEGUN_S = time.monotonic()
if sys.argv[1:2] == ["doctor"]:
    with contextlib.suppress(OSError):  # as `scheduled_first`: where the CPUs are overloaded, imports take seconds
        os.setpriority(os.PRIO_PROCESS, 0, -20)
# A short run makes many small records and drops none, so that an early collection finds nothing. Imports are half of such a run.
gc.set_threshold(200_000)

import errno
import importlib
from typing import Any, NoReturn

import click

from opskit import __version__, interrupts
from opskit.catalog import COMMANDS, SYMPTOMS
from opskit.errors import BugInChild, OpskitError, raised_at, where_raised

DONE, FAILED, BUG, INTERRUPTED = 0, 2, 70, 130
# Errors of writing to stdout; EIO: its terminal is gone.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO)
_OF_CAPTURES = "proc/recorded/"


class LazyGroup(click.Group):
    """The commands of the catalog; a command's module is imported when it is run, not for `--help`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help on stderr and exit with code 2 if there is no argument."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(FAILED)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of the catalog."""
        return [entry.name for entry in COMMANDS if not entry.hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command; None if the catalog has no such name."""
        for name in [entry.module for entry in COMMANDS if entry.name == cmd_name]:
            command: click.Command = getattr(importlib.import_module(f"opskit.commands.{name}"), name)
            return command
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str, click.Command | None, list[str]]:
        """Find the command; for the name of a process `doctor`; suggest the nearest command for a mistyped name."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is not None:
            return name, command, args[1:]
        if ctx.resilient_parsing:  # shell completion: it is a process, or will be
            return "doctor", self.get_command(ctx, "doctor"), args
        pid = _process(ctx, name, args[1:])
        if pid is None:
            ctx.fail(f"no such command or process {name!r}{_suggestion(name)}; opskit --help lists them")
        ctx.meta["opskit.word"] = name  # it outlives the PID, which is not searched for again
        return "doctor", self.get_command(ctx, "doctor"), [str(pid), *args[1:]]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by group, then the symptoms and what to type."""
        for group in dict.fromkeys(entry.group for entry in COMMANDS):
            with formatter.section(group):
                shown = [entry for entry in COMMANDS if entry.group == group and not entry.hidden]
                formatter.write_dl([(entry.name, entry.help) for entry in shown])
        with formatter.section("Symptoms"):
            formatter.write_dl([(f"{symptom}:", command) for symptom, command in SYMPTOMS], col_max=44)


def _process(ctx: click.Context, word: str, behind: list[str]) -> int | None:
    """The PID of the process that a word means which is no command. `behind`: the words after it."""
    from opskit.checks.word import process_of_word
    from opskit.commands.shared.machine import open_machine, option_values

    with ctx.scope(cleanup=False):
        root, proc, capture = option_values(behind, "--root", "--proc", "--from")
        return process_of_word(open_machine(root, proc, () if capture is None else (capture,)), word)


def _suggestion(name: str) -> str:
    import difflib

    names = [entry.name for entry in COMMANDS]
    begins = [known for known in names if name and known.startswith(name)]
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5) or begins
    return f", did you mean {near[0]!r}?" if near else ""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="opskit %(version)s")
@click.option(
    "--from", "captures", type=click.Path(), multiple=True, metavar="CAPTURE", help="Read a file of opskit capture."
)
@click.option("--root", metavar="DIR", help="Read another machine's tree: DIR/proc, DIR/sys, DIR/etc, DIR/tmp.")
@click.option("--proc", metavar="PATH", help="Read this proc tree instead of /proc (also: HOST_PROC).")
@click.option("--no-color", is_flag=True, help="No colours (also: NO_COLOR in the environment).")
def group(**_: object) -> None:
    """Diagnose Linux hosts and the JVMs on them: the cause first, then the command to type next.

    Exit codes: 0 done; 1 done, and an error or warning was found; 2 could not do it; 70 a bug in opskit; 130 interrupted.
    """


def run(arguments: list[str] | None = None, begun_s: float | None = None) -> int:
    """Run a command line and return its exit code. `begun_s`: when opskit was started, of time.monotonic."""
    if "_OPSKIT_COMPLETE" in os.environ:
        group.main(prog_name="opskit")  # answers the shell that completes a word, and exits
    try:
        # Not group.main(): that turns a closed stdout into exit code 1.
        with group.make_context("opskit", sys.argv[1:] if arguments is None else arguments) as context:
            context.meta["opskit.begun"] = begun_s
            result: Any = group.invoke(context)
    except click.exceptions.Exit as end:  # --help, --version
        return end.exit_code
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "opskit"
        return _complain(f"{where}: {error.format_message()}", f"Try: {where} -h")
    except click.ClickException as error:
        return _complain(f"opskit: {error.format_message()}")
    except OpskitError as error:
        return _complain(f"opskit: {error}", *error.lines)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except MemoryError as error:
        return _complain(f"opskit: out of memory ({where_raised(error)})")
    except Exception as error:
        place = raised_at(error)
        if isinstance(error, OSError) and place.startswith(_OF_CAPTURES):
            return _complain(f"opskit: the capture cannot answer: {error.filename or 'a question'}: {error.strerror}")
        # An error about stdout names no file, and is raised where a report is written.
        if isinstance(error, OSError) and error.filename is None and error.errno in (errno.EPIPE, *_UNWRITABLE):
            raise
        _report_bug(error)
        return BUG
    return result if isinstance(result, int) else DONE


def _report_bug(error: Exception) -> None:
    """Print one line for the report; with OPSKIT_DEBUG=1 the traceback first."""
    if os.environ.get("OPSKIT_DEBUG"):
        import traceback

        _complain(*"".join(traceback.format_exception(type(error), error, error.__traceback__)).splitlines())
    said = str(error) if isinstance(error, BugInChild) else where_raised(error)
    python = ".".join(map(str, sys.version_info[:3]))
    _complain(
        f"opskit: this is a bug in opskit; report it with this line and the command line: {said} "
        f"(version {__version__}, Python {python}); OPSKIT_DEBUG=1 shows the traceback"
    )


def _complain(*lines: str) -> int:
    from opskit.escape import printable

    with contextlib.suppress(OSError):  # stderr is full or closed: the exit code remains
        for line in lines:
            click.echo(printable(line), err=True)
    return FAILED


def main() -> NoReturn:
    """The console script."""
    interrupts.install()
    try:
        _stand_in_for_closed_streams()
        _wait_for_our_own_children()
        code = _run_and_flush()
    except KeyboardInterrupt:  # while the output was flushed
        code = INTERRUPTED
    _end(code)


def _run_and_flush() -> int:
    try:
        code = run(begun_s=_BEGUN_S)
        sys.stdout.flush()
    except BrokenPipeError:
        return DONE  # the reader (head, a pager) has closed the pipe
    except OSError as error:  # run() lets through what is about stdout
        return _complain(f"opskit: cannot write the output: {error.strerror}")
    return code


def _stand_in_for_closed_streams() -> None:
    """Stand-ins for closed standard streams, which are None in Python: writing to stdout fails, stderr is discarded."""
    # A file that is opened later must not get number 1 or 2 either.
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _wait_for_our_own_children() -> None:
    """Undo an inherited SIG_IGN for SIGCHLD: with it the kernel drops the exit status of our children."""
    import _signal  # type: ignore[import-not-found]

    if _signal.getsignal(_signal.SIGCHLD) == _signal.SIG_IGN:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)


def _end(code: int) -> NoReturn:
    """Exit, or end by SIGTERM or SIGHUP, without finalizing the interpreter, which costs a tenth of a short run."""
    interrupts.hold()
    if "matplotlib" in sys.modules:  # without a home it made a directory in /tmp, which is removed at exit
        import atexit

        atexit._run_exitfuncs()  # noqa: SLF001  (os._exit runs none of them)
    with contextlib.suppress(OSError, ValueError):  # stderr is closed
        sys.stderr.flush()
    interrupts.end_by_signal()
    os._exit(code)
