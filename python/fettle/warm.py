"""Runs an unmodified Python script for one trial after another, and imports its slow modules once.

    python -m fettle.warm --preload torch,numpy train.py ARGS...

For each trial a child is forked from a process that has imported the modules; it sets the trial's variables and runs
the script as `python train.py ARGS...` would. So a trial costs a fork instead of the imports, a crash ends one trial
alone, and nothing of a trial is left for the next.

A child of a process with several threads, or with a CUDA context, cannot use them. If a preloaded module started a
thread or CUDA, this program refuses: leave that module out of --preload.
"""

import argparse
import importlib
import os
import runpy
import signal
import sys
import traceback

from fettle._worker import VERSION, Connection, set_environment


def fail(words):
    sys.stderr.write(f"fettle.warm: {words}\n")
    sys.stderr.flush()
    os._exit(2)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m fettle.warm", description=__doc__.split("\n\n")[0])
    parser.add_argument("--preload", default="", metavar="MODULE,...", help="modules to import once, before any trial")
    parser.add_argument("script", help="the script to run for each trial")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args(arguments)


def threads_after_a_fork():
    """Number of threads of this process that do not end before a fork, as those of OpenBLAS do."""
    if len(os.listdir("/proc/self/task")) > 1:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return len(os.listdir("/proc/self/task"))


def preload(modules):
    """Imports each module; refuses one after which a fork is not safe."""
    for name in filter(None, (name.strip() for name in modules.split(","))):
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


def run_script(script, arguments):
    """Runs the script as __main__; returns its exit code, as the interpreter would give it."""
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        runpy.run_path(script, run_name="__main__")
        return 0
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1


def train(environment, script, arguments):
    """The child: trains one trial and ends."""
    set_environment(environment)
    directory = environment.get("FETTLE_RUN_DIRECTORY")
    if directory:
        os.chdir(directory)
    code = run_script(script, arguments)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(code & 0xFF)


def exit_code_of(status):
    """As a shell says it: 128 + the signal that ended the process."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def wait_for(child, connection, run):
    """Waits until the child has ended; passes a stop on to it as SIGTERM. Returns its exit code."""
    ended = os.pidfd_open(child)
    try:
        was_told = False
        while not connection.wait(ended, run, was_told):
            os.kill(child, signal.SIGTERM)
            was_told = True
    finally:
        os.close(ended)
    return exit_code_of(os.waitpid(child, 0)[1])


def main(arguments=None):
    options = parse(arguments)
    connection = Connection.from_environment()
    if connection is None:
        # Not a worker: run the script once, so that the same command works as a Job.
        sys.exit(run_script(options.script, options.arguments))
    if not os.path.isfile(options.script):
        fail(f"{options.script}: there is no such script")
    preload(options.preload)
    connection.say("ready", VERSION, 1)
    while (assignment := connection.next_assignment()) is not None:
        run, environment = assignment
        connection.say("begin", run)
        child = os.fork()
        if child == 0:
            connection.close()
            train(environment, options.script, options.arguments)
        connection.say("end", run, wait_for(child, connection, run))
        connection.forget(run)


if __name__ == "__main__":
    main()
