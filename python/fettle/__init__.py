"""What a program gains from knowing that Fettle runs it: trials without a process start between them.

    import fettle

    for trial in fettle.trials():
        with trial:
            model = build(lr=trial.parameters["lr"])
            for step in trial.steps():
                trial.report(step, accuracy=train(model))

The program is started once and given one trial after another (`trial.execution: Warm` in the Study). Started for a
single trial, as a Job or by `trial.execution: Process`, the loop runs once: the same program works everywhere.

Only the standard library is used. docs/worker-protocol.md has the protocol.
"""

from fettle._trial import Stopped, Trial
from fettle._worker import trials

__all__ = ["Stopped", "Trial", "trials"]
__version__ = "0.1.0"
