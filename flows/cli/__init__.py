"""The program `whorl`: runs one command and turns every error into one line and an exit code."""

import atexit
import errno
import gc
import importlib.util
import os
import re
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRONG_INSTALLATION = 8
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
TRACEBACK = "whorl-error-"  # in the folder for temporary files
TRACEBACK_NAME = re.compile(rf"^{TRACEBACK}[a-z0-9_]{{8}}\.txt$")
MOST_TRACEBACKS, TRACEBACK_KEPT_S = 20, 7 * 86_400
SELDOM = 50_000  # new objects between two searches for garbage: imports make objects and no garbage


def main() -> None:
    """Run the command line of this process and exit with its code."""
    atexit.register(_leave)  # first in, last out: after Prefect's own farewells
    gc.set_threshold(SELDOM)
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before there was a command
        code = INTERRUPTED
    sys.exit(code)


def _leave() -> None:
    """End at once: what is left is not taken apart piece by piece, which costs half a second after a flow.

    stderr's file is closed for what follows: DuckDB's binding lists what Prefect and others hold until the very end."""
    gc.freeze()
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code: 0, that of a WhorlError, 2 for wrong usage, 130 after Ctrl-C."""
    _remove_old_tracebacks()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a name that this terminal cannot write is no reason to stop
    if stranger := stranger_in_our_place():
        print(f"whorl: {stranger}", file=sys.stderr)
        return WRONG_INSTALLATION
    from flows.cli.app import run_app  # not before the check: it imports what a stranger may hide

    return _ending(
        lambda: run_app(arguments), is_verbose=bool({"-v", "--verbose"} & set(arguments)), as_json="--json" in arguments
    )


def stranger_in_our_place() -> str | None:
    """What is wrong if Python finds another project's package under one of our two generic names."""
    for name in ("flows", "tasks"):
        spec = importlib.util.find_spec(name)
        places = [Path(place).resolve() for place in (spec.submodule_search_locations or [] if spec else [])]
        if places != [(ROOT / name).resolve()]:
            stands = ", ".join(str(place) for place in places) or "nothing"
            return (
                f"Python finds {stands} as package {name!r} instead of {ROOT / name}; remove the other package, "
                "or install whorl into a virtual environment of its own"
            )
    return None


def _ending(command: Callable[[], None], *, is_verbose: bool, as_json: bool = False) -> int:
    """The exit code of the command, after its error was told and its output really written.

    as_json: a machine reads on: an error is told as an object too, unless an answer was printed before it."""
    from flows.cli.output import clean, printed, show_json
    from tasks.errors import WhorlError

    code, n_before = 0, printed()

    def tell(message: str, *, is_told: bool = False) -> None:
        if not is_told:
            print(f"whorl: {clean(message)}", file=sys.stderr)
        if as_json and printed() == n_before:
            show_json({"error": {"message": clean(message), "exit_code": code}})

    try:
        try:
            command()
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
            if usage := getattr(ending.__context__, "format_message", None):  # of click, which has told people already
                tell(usage(), is_told=True)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except WhorlError as error:
            code = error.exit_code
            tell(str(error))
            _let_go(error)
        sys.stdout.flush()  # a reader that has gone (`| head`) shows up only here
    except BrokenPipeError:  # nobody reads on: end quietly, also when Python writes out its buffers at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        code = 1
        if reason := _of_disk(error) if isinstance(error, OSError) else None:
            tell(reason)
        else:
            _print_fault(error, is_verbose=is_verbose)
            code = INTERNAL_ERROR
    return code


def _of_disk(error: OSError) -> str | None:
    """What is wrong with the place that a command writes to, if that is what is wrong."""
    where = error.filename or "what this command writes"
    if error.errno in NO_SPACE:
        return f"{where}: the disk is full ({error.strerror}); expected room for it; free some and run the same again"
    if error.errno in NO_PLACE and error.filename:
        return f"{where}: cannot be used ({error.strerror}); expected a place that this user may use; name another"
    return None


def _let_go(error: BaseException | None) -> None:
    """Cut an error that was told from where it came from: Prefect keeps it, and DuckDB would complain at the exit."""
    while error is not None:
        error.__traceback__ = None
        following, error.__cause__ = error.__cause__ or error.__context__, None
        error.__context__ = None
        error = following


def _print_fault(error: Exception, *, is_verbose: bool) -> None:
    line = " ".join(str(error).split()) or "no message"
    print(f"whorl: unexpected {type(error).__name__}: {line}", file=sys.stderr)
    text = "".join(traceback.format_exception(error))
    if is_verbose:
        print(text, file=sys.stderr)
        return
    handle, name = tempfile.mkstemp(prefix=TRACEBACK, suffix=".txt")  # 0600
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    print(f"whorl: this is a fault of whorl; the traceback is in {name}, and -v shows it", file=sys.stderr)


def _remove_old_tracebacks() -> None:
    """Remove this user's tracebacks but for the latest few, and those that are older than a week."""
    with suppress(OSError):  # somebody else may tidy up at the same time; a start never fails by this
        entries = [entry for entry in os.scandir(tempfile.gettempdir()) if TRACEBACK_NAME.match(entry.name)]
        states = {entry.path: entry.stat(follow_symlinks=False) for entry in entries}
        ours = [path for path, state in states.items() if stat.S_ISREG(state.st_mode) and state.st_uid == os.geteuid()]
        ours.sort(key=lambda path: states[path].st_mtime, reverse=True)
        oldest_s = time.time() - TRACEBACK_KEPT_S
        for at, path in enumerate(ours):
            if at >= MOST_TRACEBACKS or states[path].st_mtime < oldest_s:
                Path(path).unlink()
