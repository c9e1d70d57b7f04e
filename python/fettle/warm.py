"""Runs an unmodified Python script for one trial after another, and imports its slow modules once.

    python -m fettle.warm --preload torch,numpy train.py ARGS...
    python -m fettle.warm --preload torch,numpy -m package.train ARGS...

For each trial a child is forked from a process that has imported the modules; it sets the trial's variables and runs
the script as `python train.py ARGS...` would. So a trial costs a fork instead of the imports, a crash ends one trial
alone, and nothing of a trial is left for the next. ARGS may differ from trial to trial.

A child of a process with several threads, or with a CUDA context, cannot use them. If a preloaded module started a
thread or CUDA, this program refuses: leave that module out of --preload.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import gc
import importlib
import io
import os
import runpy
import signal
import sys
import threading
import types
import weakref
from typing import Any, NoReturn

from fettle._worker import VERSION, Connection, set_environment

_PR_SET_CHILD_SUBREAPER = 36
# Parts of the standard library that have no public name.
_FINALIZE: Any = weakref.finalize
_THREADING: Any = threading


def fail(words: str) -> NoReturn:
    sys.stderr.write(f"fettle.warm: {words}\n")
    sys.stderr.flush()
    os._exit(2)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fettle.warm", description=str(__doc__).split("\n\n")[0],
                                     allow_abbrev=False)
    parser.add_argument("--preload", default="", metavar="MODULE,...", help="modules to import once, before any trial")
    parser.add_argument("-m", dest="is_module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script", help="the script to run for each trial")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args(arguments)


# ---- Before the first trial --------------------------------------------------------------------


def threads_after_a_fork() -> int:
    """Number of threads of this process that do not end before a fork, as those of OpenBLAS do."""
    if len(os.listdir("/proc/self/task")) > 1:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return len(os.listdir("/proc/self/task"))


def names_in(modules: str) -> list[str]:
    return [name.strip() for name in modules.split(",") if name.strip()]


def preload(modules: str) -> None:
    """Imports each module; refuses one after which a fork is not safe."""
    for name in names_in(modules):
        before = threads_after_a_fork()
        try:
            importlib.import_module(name)
        except ImportError as error:
            fail(f"--preload {name}: {error}")
        if threads_after_a_fork() > before:
            fail(f"--preload {name}: importing it started a thread, which a forked trial would not have. Leave it out, "
                 "or use fettle.trials()")
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            fail(f"--preload {name}: importing it initialised CUDA, which a forked trial could not use. Leave it out, "
                 "or use fettle.trials()")


class LateModules:
    """Modules of preloaded packages that are imported on first use, as torch._dynamo (a second) is by an optimizer.

    What the first good trial imported of them is imported in the worker, too, for the trials after it; first in a child
    that shows whether a fork is safe afterwards.
    """

    def __init__(self, modules: str) -> None:
        self._packages = {name.partition(".")[0] for name in names_in(modules)}
        self._names = os.memfd_create("fettle") if self._packages else None

    def note(self, before: set[str]) -> None:
        """In the child: says which have come to those in `before`."""
        if self._names is not None:
            late = [name for name in list(sys.modules) if name not in before and name.partition(".")[0] in self._packages]
            os.pwrite(self._names, "\n".join(late).encode(), 0)

    def learn(self) -> None:
        """In the worker, when a trial has ended well. Once."""
        if self._names is None:
            return
        names = os.pread(self._names, 1 << 20, 0).decode().split()
        os.close(self._names)
        self._names = None
        if names and self._is_safe(names):
            self._import(names)
            gc.freeze()

    def _is_safe(self, names: list[str]) -> bool:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            self._import(names)
            torch = sys.modules.get("torch")
            has_cuda = torch is not None and torch.cuda.is_initialized()
            os._exit(1 if has_cuda or threads_after_a_fork() > 1 else 0)
        return os.waitpid(child, 0)[1] == 0

    @staticmethod
    def _import(names: list[str]) -> None:
        for name in names:
            try:
                importlib.import_module(name)
            except Exception:  # a name that only the script could import
                pass


def set_search_path(options: argparse.Namespace) -> None:
    """The first entry of sys.path is the script's folder, as in a process of its own; of a module: this folder."""
    if not options.is_module and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(options.script))


# ---- The child ---------------------------------------------------------------------------------


class ExitHandlers:
    """Those of preloaded modules are of this process alone: a child that ran them would delete what its siblings need."""

    def __init__(self) -> None:
        self._of_parent = _FINALIZE._registry

    def forget(self) -> None:
        """In the child: at its end only the handlers of its script run, and those that every process needs."""
        atexit._clear()
        _FINALIZE._registry = {}  # the parent's is kept: to destroy it would copy its pages
        _FINALIZE._registered_with_atexit = False
        for module, function in (("logging", "shutdown"), ("multiprocessing.util", "_exit_function")):
            if module in sys.modules:
                atexit.register(getattr(sys.modules[module], function))


def execute(options: argparse.Namespace) -> None:
    sys.argv = [options.script, *options.arguments]
    if options.is_module:
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        return
    with io.open_code(options.script) as file:
        code = compile(file.read(), options.script, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__file__ = options.script
    setattr(main, "__builtins__", __builtins__)
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def run_script(options: argparse.Namespace) -> int:
    """Runs the script as __main__; returns its exit code, as the interpreter would give it."""
    try:
        execute(options)
        return 0
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    except BaseException as error:
        trace: Any = error.__traceback__
        error = error.with_traceback(trace.tb_next.tb_next)  # without run_script() and execute()
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def finish_interpreter() -> None:
    """What the interpreter does at its end, without the slow destruction of every module."""
    _THREADING._shutdown()
    atexit._run_exitfuncs()
    for one in gc.get_objects():  # without those that were there before the fork (gc.freeze)
        if issubclass(type(one), io.IOBase):
            flush(one)
    flush(sys.stdout)
    flush(sys.stderr)


def flush(stream: Any) -> None:
    try:
        stream.flush()
    except (AttributeError, OSError, ValueError):
        pass


def train(environment: dict[str, str], options: argparse.Namespace, exit_handlers: ExitHandlers,
          late_modules: LateModules) -> NoReturn:
    """The child: trains one trial and ends."""
    modules = set(sys.modules)
    exit_handlers.forget()
    os.setsid()  # a group of its own, as a process of its own has
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    set_environment(environment)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()  # else each trial that sets no seed draws the same numbers
    set_search_path(options)
    code = run_script(options)
    late_modules.note(modules)
    finish_interpreter()
    os._exit(code & 0xFF)


# ---- The worker --------------------------------------------------------------------------------


def children() -> set[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return {int(child) for child in file.read().split()}
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN; the runner ends orphans with the worker
        return set()


def end_orphans(others: set[int], signal_number: int) -> None:
    """Ends the processes that a trial left, which have become children of this one; their own children come next."""
    while orphans := children() - others:
        for orphan in orphans:
            os.kill(orphan, signal_number)
        for orphan in orphans:
            os.waitpid(orphan, 0)


def exit_code_of(status: int) -> int:
    """As a shell says it: 128 + the signal that ended the process."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def end_like(status: int) -> NoReturn:
    """Ends this process as another one ended. Where SIGTERM reached us, the run ends with the worker."""
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(exit_code_of(status))


class Forks:
    """The children of this process, one at a time. A SIGTERM to this process is passed on to the child."""

    def __init__(self, connection: Connection, late_modules: LateModules) -> None:
        self._connection = connection
        self._late_modules = late_modules
        self._child: int | None = None
        self._is_terminated = False
        self._is_told = False
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._others = children()
        self._exit_handlers = ExitHandlers()
        signal.signal(signal.SIGTERM, self._take_sigterm)

    def train(self, run: str, environment: dict[str, str], options: argparse.Namespace) -> int:
        """Trains the run in a child; returns its exit code."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until self._child is known
        child = os.fork()
        if child == 0:
            self._connection.close()
            train(environment, options, self._exit_handlers, self._late_modules)
        self._child = child
        self._is_told = False
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        status = self._wait(run, child)
        self._child = None
        end_orphans(self._others, signal.SIGTERM if self._is_told else signal.SIGKILL)
        if self._is_terminated:
            end_like(status)
        return exit_code_of(status)

    def _wait(self, run: str, child: int) -> int:
        """Waits until the child has ended; passes a stop on to it. Returns its wait status."""
        ended = os.pidfd_open(child)
        try:
            while not self._connection.wait(ended, run, self._is_told):
                self._tell()
        finally:
            os.close(ended)
        return os.waitpid(child, 0)[1]

    def _take_sigterm(self, *_: object) -> None:
        if self._child is None:
            os._exit(128 + signal.SIGTERM)
        self._is_terminated = True
        self._tell()

    def _tell(self) -> None:
        if not self._is_told and self._child is not None:
            self._is_told = True
            os.kill(self._child, signal.SIGTERM)


class CommandLine:
    """Finds the options of each run in its command line, at the place where those of this process are in its own."""

    def __init__(self, first: list[str], options: argparse.Namespace) -> None:
        """`first`: the command line of the run that this process was started for."""
        own = getattr(sys, "orig_argv", [])[1:]  # Python 3.10
        self._is_found = bool(own) and first[-len(own):] == own
        self._before = first[:len(first) - len(sys.argv[1:])]
        self._options = options

    @property
    def is_found(self) -> bool:
        """Whether runs may have arguments of their own: not behind a shell, whose words are not ours."""
        return self._is_found

    def options(self, arguments: list[str]) -> argparse.Namespace:
        """The options of the run with this command line; ValueError: it needs a process of its own."""
        if not self._is_found or not arguments:
            return self._options
        place = len(self._before)
        if arguments[:place] != self._before:
            raise ValueError("its command line differs before the arguments of fettle.warm")
        try:
            options = parse(arguments[place:])
        except SystemExit:
            raise ValueError("its arguments cannot be read") from None
        if options.preload != self._options.preload:
            raise ValueError("its --preload differs")
        return options


def work(connection: Connection, options: argparse.Namespace) -> None:
    preload(options.preload)
    first = assignment = connection.next_assignment()  # a worker starts for a first run
    if first is None:
        return
    command_line = CommandLine(first.arguments, options)
    late_modules = LateModules(options.preload)
    forks = Forks(connection, late_modules)
    gc.collect()
    gc.freeze()  # children do not copy pages only because the collector visits them
    connection.say("ready", VERSION, 1, *(["arguments"] if command_line.is_found else []))
    while assignment is not None:
        try:
            run_options = command_line.options(assignment.arguments)
        except ValueError as error:
            connection.say("refuse", assignment.run, error)
        else:
            connection.say("begin", assignment.run)
            code = forks.train(assignment.run, assignment.environment, run_options)
            connection.say("end", assignment.run, code)
            if code == 0:
                late_modules.learn()
        connection.forget(assignment.run)
        assignment = connection.next_assignment()


def main() -> None:
    options = parse(sys.argv[1:])
    connection = Connection.from_environment()
    if not options.is_module and not os.path.isfile(options.script):
        fail(f"{options.script}: there is no such script")
    set_search_path(options)
    if connection is not None:
        work(connection, options)
        return
    # Not a worker: run the script once, so that the same command works as a Job.
    sys.exit(run_script(options))


if __name__ == "__main__":
    main()
