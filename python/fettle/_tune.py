"""tune(): evaluates a function with the parameters that a search proposes.

One thread drives worker processes: it asks, tells and answers reports. With threads as workers each drives itself;
they share a _Tally. Every way out closes the search and ends the workers.
"""

from __future__ import annotations

import selectors
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fettle._errors import FettleError
from fettle._evaluate import outcome_of
from fettle._function import Function, Outcome, Task, Values, evaluate
from fettle._progress import Progress
from fettle._stored import stored_trials
from fettle._workers import Process, Starter, end_all, way_to_start
from fettle.result import Result, TrialRecord
from fettle.search import Names, Search, SearchTrial
from fettle.search import Result as Told
from fettle.space import Space

__all__ = ["tune"]

MOST_WORKERS = 1024
_TICK = 0.5
_NEEDS_CHECKPOINTS = ("pbt", "pb2")


class _SearchLost(BaseException):
    """Carries an error of the search through the user's function, which might catch an Exception."""


def tune(function: Callable[..., Any], space: Space, *, minimize: Names = None, maximize: Names = None,
         trials: int | None = None, workers: int | str = 1, resource: tuple[int, int] | None = None,
         study: str | None = None, seed: int | None = None, algorithm: str | Mapping[str, Any] | None = None,
         early_stopping: str | Mapping[str, Any] | None = None, timeout: float | None = None,
         trial_timeout: float | None = None, max_cost: float | None = None,
         constraints: Sequence[Mapping[str, Any]] | None = None, first: Iterable[Mapping[str, Any]] = (),
         known: Iterable[tuple[Mapping[str, Any], Told]] = (), directory: str | None = None,
         first_failures: int = 5, progress: bool | None = None) -> Result:
    """Finds the parameters with which a function returns the smallest, or largest, value.

    function        takes the parameters by name, and the trial if it has an argument `trial`; returns the objective, a
                    list of several, or a dict. None after trial.report(): its last report. NaN: infeasible. An
                    exception, None, or what is no number: a failed trial, which the search avoids
    minimize, maximize, seed, algorithm, early_stopping, constraints, first, known, max_cost: see Search
    trials          trials at most, with those of an earlier call with the same `study`
    workers         1: in this process. 4: four processes. "threads:4": threads. "fork:4", "spawn:4": processes of one
                    kind, where the choice matters
    resource        (1, 27): trials report steps 1 to 27, and poor ones are stopped on the way
    study           a name: kept in `directory`/.fettle, as by `fettle run`, and resumed by the same call, for which
                    trials, max_cost, workers, timeouts and the function may differ
    timeout         seconds after which no trial begins
    trial_timeout   seconds after which a trial is ended as failed; needs worker processes
    first_failures  if this many trials fail before one succeeds, tune() raises FettleError
    progress        a line on standard error; None: on a terminal

    Ctrl-C ends the workers and raises KeyboardInterrupt, whose `result` has the trials that had ended.
    """
    kind, count = _workers_of(workers)
    if trials is None and timeout is None and max_cost is None:
        raise ValueError("say when to end: trials=60, timeout=600 (seconds), or both")
    _check_numbers(trials, timeout, trial_timeout, first_failures)
    if (algorithm if isinstance(algorithm, str) else (algorithm or {}).get("name")) in _NEEDS_CHECKPOINTS:
        raise ValueError(f"{algorithm!r} starts trials from the checkpoints of others, which a function has none of: "
                         "use fettle.Study with a program")
    with Search(space, minimize=minimize, maximize=maximize, seed=seed, algorithm=algorithm, trials=trials,
                max_cost=max_cost, resource=resource, early_stopping=early_stopping,
                parallel=None if study else count,  # it may be resumed with another number of workers
                constraints=constraints, first=first, known=known, study=study, directory=directory) as search:
        called = Function(function, space)
        task = Task(list(search.objectives), study or "", seed or 0, None if resource is None else resource[1])
        sends_cost = max_cost is not None or (isinstance(algorithm, Mapping) and bool(algorithm.get("cost_aware")))
        earlier = stored_trials(study, task.objectives, directory) if study and search.stored_trials else []
        tally = _Tally(search, trials, timeout, first_failures, sends_cost, progress, earlier)
        if kind == "processes":
            kind, sentence = way_to_start(called, space)
            if sentence is not None:
                print(sentence, file=sys.stderr)
        if trial_timeout is not None and kind in ("here", "threads"):
            raise ValueError("trial_timeout needs worker processes: workers=2, or workers=\"fork:1\"")
        return _run(tally, called, space, task, kind, count, trial_timeout)


def _run(tally: _Tally, called: Function, space: Space, task: Task, kind: str, count: int,
         trial_timeout: float | None) -> Result:
    try:
        if kind == "here":
            _serve(tally, called, task, whole_process=True)
        elif kind == "threads":
            _run_threads(tally, called, task, count)
        else:
            _Processes(tally, Starter(called, space, task, kind), count, trial_timeout).run()
        tally.close()
        result = tally.result()
        tally.search.close()  # it takes a moment, and Ctrl-C may come in it
        return result
    except KeyboardInterrupt as interrupt:
        tally.close()
        print(f"fettle: interrupted after {len(tally.records)} trials; " +
              (f"the same call resumes the study {tally.search.study!r}" if tally.search.study else
               "with study=\"name\" the same call would resume"), file=sys.stderr)
        setattr(interrupt, "result", tally.result("interrupt"))
        raise  # not a class of its own: only this one makes the interpreter end as by SIGINT


def _workers_of(workers: int | str) -> tuple[str, int]:
    """here, threads, fork, spawn or processes; and how many."""
    kind, count = ("processes", workers) if isinstance(workers, int) else ("", 0)
    if isinstance(workers, str):
        name, _, number = workers.partition(":")
        if name in ("threads", "fork", "spawn", "processes") and number.isascii() and number.isdigit():
            kind, count = name, int(number)
    if not kind or isinstance(workers, bool) or not isinstance(count, int) or not 1 <= count <= MOST_WORKERS:
        raise ValueError(f"workers: expected a number from 1 to {MOST_WORKERS}, or \"threads:4\", \"fork:4\" or "
                         f"\"spawn:4\"; found {workers!r}")
    return ("here" if workers == 1 else kind), count


def _check_numbers(trials: int | None, timeout: float | None, trial_timeout: float | None, failures: int) -> None:
    for name, value in (("trials", trials), ("first_failures", failures)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"{name}: expected a whole number of at least 1; found {value!r}")
    for name, seconds in (("timeout", timeout), ("trial_timeout", trial_timeout)):
        if seconds is not None and not seconds > 0:
            raise ValueError(f"{name}: expected seconds above 0; found {seconds!r}")


class _Tally:
    """The trials that have ended, and whether more may begin. Threads may share it."""

    def __init__(self, search: Search, trials: int | None, timeout: float | None, first_failures: int,
                 sends_cost: bool, progress: bool | None, earlier: Sequence[TrialRecord]) -> None:
        """`earlier`: the trials that an earlier call with the same study has ended."""
        self.search = search
        self._earlier = [one._replace(parameters=search.typed(one.parameters)) for one in earlier]
        self.records: list[TrialRecord] = []
        self.running = 0
        self.stops = False  # no trial begins, and running ones end at their next report
        self._lock = threading.Lock()
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._first_failures = first_failures
        self._sends_cost = sends_cost
        self._most = trials
        name, direction = next(iter(search.objectives.items()))
        self._progress = Progress(name, direction, trials, progress)
        self._ended_by = "trials"
        for one in self._earlier:
            self._progress.note(one.value, one.state in ("failed", "infeasible"))

    def ask(self, count: int) -> list[SearchTrial]:
        """Trials to begin; fewer than `count` if no more come for now."""
        if self.stops:
            return []
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._ended_by = "timeout"
            return []
        found = self.search.ask_many(count)
        with self._lock:
            self.running += len(found)
            self._progress.draw(self.running)
        for trial in found:
            if trial.parent is not None:
                raise FettleError("this algorithm starts trials from the checkpoints of others; use fettle.Study")
        return found

    def report(self, trial: SearchTrial, step: int, values: Values) -> str:
        """continue, stop, pause, or ended: the step was the last one."""
        if self.stops:
            return "stop"
        return self.search.decide(trial, step, values if len(values) > 1 else values[0])

    def end(self, trial: SearchTrial, outcome: Outcome) -> None:
        """Tells the search, and records the trial. FettleError: the first trials have all failed."""
        if self.stops and outcome.is_stopped:
            return
        if not outcome.is_reported:
            values = outcome.values or [None] * len(self.search.objectives)
            trial.tell(values if len(values) > 1 else values[0], metrics=outcome.metrics if self._wants_metrics else None,
                       cost=outcome.seconds if self._sends_cost else None)
        with self._lock:
            self.running -= 1
            if not outcome.is_paused:
                self._record(trial, outcome)
            self._progress.draw(self.running)
        self._check_failures()

    @property
    def _wants_metrics(self) -> bool:
        return bool(self.search.constraints)

    def _record(self, trial: SearchTrial, outcome: Outcome) -> None:
        state = ("failed" if outcome.is_failed else "stopped" if outcome.is_stopped else
                 "infeasible" if outcome.values is None or None in outcome.values else "completed")
        values = None if outcome.values is None else tuple(outcome.values)
        self.records.append(TrialRecord(trial.id, trial.parameters, state, values, outcome.error, outcome.trace,
                                        outcome.metrics, outcome.curve, outcome.seconds))
        self._progress.note(values[0] if values else None, state in ("failed", "infeasible"))

    def _check_failures(self) -> None:
        records = self.records
        if len(records) == self._first_failures and not self._earlier and all(one.state == "failed" for one in records):
            raise self._all_failed()

    def _all_failed(self) -> FettleError:
        last = self.records[-1]
        return FettleError(f"the first {len(self.records)} trials have all failed; the last one, with "
                           f"{last.parameters}: {last.error}" + (f"\n\n{last.trace}" if last.trace else ""))

    def close(self) -> None:
        """No more is recorded."""
        self.stops = True
        with self._lock:
            self._progress.draw(0, last=True)

    def result(self, ended_by: str | None = None) -> Result:
        """FettleError: every trial has failed."""
        if ended_by is None and self.records and not self._earlier and all(one.state == "failed" for one in self.records):
            raise self._all_failed()
        trials = [*self._earlier, *self.records]
        fewer = self._most is None or len(trials) < self._most
        by = "exhausted" if self._ended_by == "trials" and fewer else self._ended_by
        return Result(self.search.objectives, trials, self.search.front, self.search.study, ended_by or by)


# ---- In this process -----------------------------------------------------------------------------


def _serve(tally: _Tally, called: Function, task: Task, *, whole_process: bool) -> None:
    """Evaluates trials until no more come."""
    while True:
        asked = tally.ask(1)
        if not asked:
            return
        trial = asked[0]

        def on_report(step: int, values: Values, trial: SearchTrial = trial) -> str:
            try:
                return tally.report(trial, step, values)
            except FettleError as error:
                raise _SearchLost from error

        try:
            outcome = evaluate(called, task, trial.id, trial.parameters, on_report, whole_process=whole_process)
        except _SearchLost as lost:
            assert isinstance(lost.__cause__, FettleError)
            raise lost.__cause__ from None
        tally.end(trial, outcome)


def _run_threads(tally: _Tally, called: Function, task: Task, count: int) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            _serve(tally, called, task, whole_process=False)
        except BaseException as error:
            if not tally.stops:
                errors.append(error)
            tally.stops = True

    threads = [threading.Thread(target=work, name=f"fettle-{index}", daemon=True) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_TICK)
    if errors:
        raise errors[0]


# ---- In processes --------------------------------------------------------------------------------


class _Processes:
    """Keeps up to `count` workers busy. A worker that dies fails its trial, and another one takes its place."""

    def __init__(self, tally: _Tally, starter: Starter, count: int, trial_timeout: float | None) -> None:
        self._tally = tally
        self._starter = starter
        self._count = count
        self._trial_timeout = trial_timeout
        self._workers: list[Process] = []
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        gently = False
        try:
            while self._assign():
                self._wait()
            gently = True
        finally:
            self._selector.close()
            end_all(self._workers, gently=gently)

    def _assign(self) -> bool:
        """Hands out trials. Returns whether any runs."""
        idle = [one for one in self._workers if one.trial is None]
        free = self._count - len(self._workers) + len(idle)
        for trial in self._tally.ask(free) if free else []:
            worker = idle.pop() if idle else self._start()
            worker.trial = trial
            worker.deadline = None if self._trial_timeout is None else time.monotonic() + self._trial_timeout
            worker.say({"id": trial.id, "parameters": trial.parameters})
        return len(idle) < len(self._workers)

    def _start(self) -> Process:
        worker = self._starter.start(self._workers)
        self._workers.append(worker)
        self._selector.register(worker, selectors.EVENT_READ)
        return worker

    def _wait(self) -> None:
        deadlines = [one.deadline for one in self._workers if one.trial is not None and one.deadline is not None]
        seconds = min([_TICK, *(one - time.monotonic() for one in deadlines)])
        for key, _ in self._selector.select(max(0.0, seconds)):
            worker = key.fileobj
            assert isinstance(worker, Process)
            messages = worker.hear()
            if messages is None:
                self._bury(worker, None)
            for message in messages or ():
                self._take(worker, message)
        for worker in list(self._workers):
            if worker.trial is not None and worker.deadline is not None and time.monotonic() >= worker.deadline:
                worker.kill()
                self._bury(worker, f"it took longer than {self._trial_timeout:g} s")

    def _take(self, worker: Process, message: dict[str, Any]) -> None:
        if "broken" in message:
            raise FettleError(f"a new process cannot load the function: {message['broken']}")
        if "report" in message:
            worker.say({"decision": self._tally.report(worker.trial, *message["report"])})
            return
        trial, worker.trial = worker.trial, None
        self._tally.end(trial, outcome_of(message["outcome"]))

    def _bury(self, worker: Process, why: str | None) -> None:
        self._workers.remove(worker)
        self._selector.unregister(worker)
        worker.close()
        phrase = worker.wait(1.0)
        if phrase is None:  # it closed its socket, and lives
            worker.kill()
            phrase = worker.wait(10.0)
        if worker.trial is not None:
            self._tally.end(worker.trial, Outcome(None, is_failed=True, error=why or phrase))
