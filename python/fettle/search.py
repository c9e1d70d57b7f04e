"""Search: ask for trials and tell results, for programs with a loop of their own.

    search = fettle.Search(space, minimize="loss", trials=100)
    for trial in search:
        trial.tell(objective(**trial.parameters))

The search runs in a process of `fettle suggest`; this is its client. Threads may share a Search and its trials: each
request is one step. The process is started with the Search, and ends with close() or `with`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Union

from fettle._errors import FettleError
from fettle._lines import Lines
from fettle._values import cost_of, objectives_of, parameters_of, value_of
from fettle.space import Space, variables

__all__ = ["Best", "Search", "SearchTrial"]

# Algorithms that decide which trials continue, and take no rule of early stopping.
_DECIDE_THEMSELVES = ("hyperband", "bohb", "pbt", "pb2")

Names = Union[str, Sequence[str], None]
Result = Union[float, None, Sequence[Union[float, None]], Mapping[str, Union[float, None]]]


class Best(NamedTuple):
    """A completed trial. `value` is the first of `values`, which has one value an objective."""

    id: int
    parameters: dict[str, Any]
    values: tuple[float, ...]

    @property
    def value(self) -> float:
        return self.values[0]

    @property
    def params(self) -> dict[str, Any]:
        return self.parameters


class SearchTrial:
    """A trial that was asked for. Attributes:

    id          its number in the study
    parameters  dict of its parameters; also `trial["lr"]`. One whose `when` does not hold is missing
    parent      (id, step): begin from the checkpoint that another trial made at that step (pbt, pb2); else None
    again       whether it was handed out before, by a process that has died
    resumed     whether it was paused, and continues from its checkpoint
    state       running, paused, stopped or ended
    """

    def __init__(self, search: Search, id: int, parameters: dict[str, Any], parent: tuple[int, int] | None = None,
                 again: bool = False) -> None:
        self._search = search
        self.id = id
        self.parameters = parameters
        self.parent = parent
        self.again = again
        self.resumed = False
        self.state = "running"
        self.thread = threading.get_ident()

    @property
    def params(self) -> dict[str, Any]:
        return self.parameters

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def __repr__(self) -> str:
        return f"<fettle trial {self.id} {self.parameters} {self.state}>"

    def report(self, step: int, value: Result, *, cost: float | None = None) -> bool:
        """Reports the value at a step. Returns whether to continue; `state` says why not: stopped, paused or ended."""
        return self._search.report(self, step, value, cost=cost)

    def tell(self, value: Result = None, *, cost: float | None = None,
             metrics: Mapping[str, float] | None = None) -> None:
        """Ends the trial with its result; None, NaN or an infinity: infeasible."""
        self._search.tell(self, value, cost=cost, metrics=metrics)


class Search:
    """A search over a space.

    minimize, maximize  name of the objective, or list of names; both may be given. Values come in this order
    seed                the same seed and results give the same trials
    algorithm           a name, "tpe", or a dict with settings, {"name": "tpe", ...} (docs/search.md); default: auto
    trials              trials at most; None: no limit
    max_cost            no trials begin once the costs that were told reach this
    resource            (first, last): the steps of a trial that reports on its way
    early_stopping      rule that stops poor trials, with a resource: a name, a dict, or None: asha. "none": no rule.
                        {"name": "asha", "promote": True}, and the algorithms hyperband and bohb, pause trials, which
                        a later ask() returns again
    parallel            trials that run at once, if known
    constraints         [{"metric": "size", "max": 1e6}, ...]: tell() then takes these metrics
    first               points to try first; a point may leave parameters out
    known               results from elsewhere: [(parameters, value), ...]
    study               a name: the study is kept in `directory`/.fettle, and resumed by the same call, in which
                        trials, max_cost and parallel may differ
    """

    def __init__(self, space: Space, *, minimize: Names = None, maximize: Names = None, seed: int | None = None,
                 algorithm: str | Mapping[str, Any] | None = None, trials: int | None = None,
                 max_cost: float | None = None, resource: tuple[int, int] | None = None,
                 early_stopping: str | Mapping[str, Any] | None = None, parallel: int | None = None,
                 constraints: Sequence[Mapping[str, Any]] | None = None,
                 first: Iterable[Mapping[str, Any]] = (), known: Iterable[tuple[Mapping[str, Any], Result]] = (),
                 study: str | None = None, directory: str | None = None) -> None:
        self.objectives = objectives_of(minimize, maximize)
        if study is not None and (not isinstance(study, str) or not study):
            raise ValueError(f"study: expected a name; found {study!r}")
        self.study = study
        self.constraints = [dict(one) for one in constraints or ()]
        self._condition = threading.Condition()
        self._trials: dict[int, SearchTrial] = {}
        self._is_exhausted = False
        self._last_step = None if resource is None else resource[1]
        request = self._study(space, algorithm, resource, early_stopping, {
            "name": study, "seed": seed, "max_trials": trials, "max_cost": max_cost, "parallel": parallel})
        if self.constraints:
            request["constraints"] = self.constraints
        points = [parameters_of(point, space) for point in first]
        if points:
            request["first"] = points
        results = [self._known(parameters_of(point, space), value) for point, value in known]
        if results:
            request["known"] = results
        self._space = space
        options = [] if study is None else ["--study", study]
        self._lines = Lines(options + ([] if directory is None else ["-C", str(directory)]))
        try:
            self.stored_trials: int = self._lines.request("study", request).get("trials", 0)
        except BaseException:
            self.close()
            raise

    def _study(self, space: Space, algorithm: str | Mapping[str, Any] | None, resource: tuple[int, int] | None,
               early_stopping: str | Mapping[str, Any] | None, plain: Mapping[str, Any]) -> dict[str, Any]:
        """The request that begins the study. `plain`: members that are sent as they are; None: left out."""
        out: dict[str, Any] = {name: value for name, value in plain.items() if value is not None}
        out.update(space=variables(space), objectives=list(self.objectives))
        directions = list(self.objectives.values())
        out.update({"direction": directions[0]} if len(directions) == 1 else {"directions": directions})
        name = algorithm if isinstance(algorithm, str) else (algorithm or {}).get("name")
        if early_stopping is None and resource is not None and name not in _DECIDE_THEMSELVES:
            early_stopping = "asha" if len(directions) == 1 else "none"
        if early_stopping is not None and resource is None:
            raise ValueError("early_stopping needs resource=(first, last): the steps at which trials report")
        for member, rule in (("algorithm", algorithm), ("early_stopping", early_stopping)):
            if rule is not None:
                out[member] = {"name": rule} if isinstance(rule, str) else dict(rule)
        if resource is not None:
            out["resource"] = {"min": resource[0], "max": resource[1]}
        return out

    # ---- Trials ----------------------------------------------------------------------------------

    @property
    def exhausted(self) -> bool:
        """Whether no more trials will come: the space or the number of trials is used up."""
        return self._is_exhausted

    def ask(self) -> SearchTrial | None:
        """The next trial. None: no more will come (`exhausted`), or none before a running one has ended."""
        asked = self.ask_many(1)
        return asked[0] if asked else None

    def ask_many(self, count: int) -> list[SearchTrial]:
        """At most `count` trials, to train at the same time."""
        with self._condition:
            found = [one for stray in self._lines.strays for one in stray.get("trials", ())]
            self._lines.strays.clear()
            if not found:
                reply = self._lines.request("ask", count)
                self._is_exhausted = bool(reply.get("exhausted"))
                found = reply["trials"]
            return [self._begin(one) for one in found]

    def _begin(self, found: Mapping[str, Any]) -> SearchTrial:
        paused = self._trials.get(found["id"])
        if paused is not None and "params" not in found:
            # Another object: the thread that had the trial may still read that it was paused.
            trial = SearchTrial(self, paused.id, paused.parameters, paused.parent, paused.again)
        else:
            parent = found.get("parent")
            trial = SearchTrial(self, found["id"], self.typed(found["params"]),
                                (parent["id"], parent["step"]) if parent else None, bool(found.get("again")))
        trial.resumed = bool(found.get("resume"))
        self._trials[trial.id] = trial
        return trial

    def typed(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Real numbers as float, also those that JSON writes without a point."""
        return {name: float(value) if self._space[name].kind == "float" else value
                for name, value in parameters.items()}

    def __iter__(self) -> Iterator[SearchTrial]:
        """Trials until no more come. Where a running trial must end first, waits for the thread that has it."""
        while True:
            with self._condition:
                trial = self.ask()
                while trial is None and not self._is_exhausted:
                    if all(one.thread == threading.get_ident() for one in self._trials.values()
                           if one.state == "running"):
                        raise FettleError("the search waits for results: call tell() or report() for each trial")
                    self._condition.wait()
                    trial = self.ask()
            if trial is None:
                return
            yield trial

    def report(self, trial: SearchTrial | int, step: int, value: Result, *, cost: float | None = None) -> bool:
        """See SearchTrial.report."""
        return self.decide(trial, step, value, cost=cost) in ("continue", "ended")

    def decide(self, trial: SearchTrial | int, step: int, value: Result, *, cost: float | None = None) -> str:
        """As report(), but returns continue, stop, pause, or ended: it was the last step."""
        content = {"id": self._id(trial), "step": step, **self._values(value), **cost_of(cost)}
        with self._condition:  # or another thread might resume a trial before it is known to be paused
            decision: str = self._request("report", content)["decision"]
            if decision == "continue" and self._last_step is not None and step >= self._last_step:
                decision = "ended"
            if decision != "continue":
                self._end(trial, {"pause": "paused", "stop": "stopped"}.get(decision, decision))
        return decision

    def tell(self, trial: SearchTrial | int, value: Result = None, *, cost: float | None = None,
             metrics: Mapping[str, float] | None = None) -> None:
        """See SearchTrial.tell."""
        content = {"id": self._id(trial), **self._values(value), **cost_of(cost)}
        if metrics:
            content["metrics"] = {name: value_of(one, name) for name, one in metrics.items()}
        with self._condition:
            self._request("tell", content)
            self._end(trial, "ended")

    def enqueue(self, parameters: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Adds a point to try before others: search.enqueue(lr=0.01). It may leave parameters out."""
        self._request("first", [parameters_of({**(parameters or {}), **more}, self._space)])

    def add(self, parameters: Mapping[str, Any], value: Result) -> None:
        """Adds a result from elsewhere, for the search to learn from."""
        self._request("known", [self._known(parameters_of(parameters, self._space), value)])

    # ---- Results ---------------------------------------------------------------------------------

    @property
    def best(self) -> Best | None:
        """The best completed trial, of one objective; None: there is none yet."""
        if len(self.objectives) > 1:
            raise ValueError("there are several objectives: use front")
        found = self._lines.request("best", True)["best"]
        return None if found is None else Best(found["id"], self.typed(found["params"]), (float(found["value"]),))

    @property
    def front(self) -> list[Best]:
        """The completed trials that no other one beats in every objective."""
        if len(self.objectives) == 1:
            best = self.best
            return [] if best is None else [best]
        found = self._lines.request("best", True)["front"]
        return [Best(one["id"], self.typed(one["params"]), tuple(map(float, one["values"]))) for one in found]

    def close(self) -> None:
        """Ends the process of the search. A study with a name can be resumed."""
        if hasattr(self, "_lines"):
            self._lines.close()

    def __enter__(self) -> Search:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    # ---- Requests --------------------------------------------------------------------------------

    def _request(self, verb: str, content: Any) -> dict[str, Any]:
        with self._condition:
            reply = self._lines.request(verb, content)
            self._condition.notify_all()  # of threads that wait for a result
        return reply

    def _end(self, trial: SearchTrial | int, state: str) -> None:
        """Call it with the condition held."""
        found = trial if isinstance(trial, SearchTrial) else self._trials.get(trial)
        if found is None:
            return
        found.state = state
        if state != "paused":
            self._trials.pop(found.id, None)

    @staticmethod
    def _id(trial: SearchTrial | int) -> int:
        return trial.id if isinstance(trial, SearchTrial) else trial

    def _values(self, value: Result) -> dict[str, Any]:
        """The value as a request has it: `value`, or `values` where there are several objectives."""
        names = list(self.objectives)
        if isinstance(value, Mapping):
            missing = [name for name in names if name not in value]
            if missing:
                raise ValueError(f"the result has no {missing[0]!r}; found {', '.join(map(repr, value))}")
            value = [value[name] for name in names]
        if len(names) == 1 and not isinstance(value, (list, tuple)):
            return {"value": value_of(value, names[0])}
        if value is None:
            return {"values": [None] * len(names)}
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(names):
            raise TypeError(f"there are {len(names)} objectives ({', '.join(names)}), so a result is a list of as "
                            f"many values, or a dict; found {value!r}")
        return {"values": [value_of(one, name) for one, name in zip(value, names)]}

    def _known(self, parameters: dict[str, Any], value: Result) -> dict[str, Any]:
        values = self._values(value)
        if None in (values["values"] if "values" in values else [values["value"]]):
            raise ValueError(f"a known result has a finite value for each objective; found {value!r}")
        return {"params": parameters, **values}
