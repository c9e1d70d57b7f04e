"""The same training as script.py, for one trial after another."""
import fettle
import mlp

for trial in fettle.trials():
    with trial:
        curve = mlp.losses(trial["rate"], trial["hidden"], trial.seed % 2**31, trial.until_step)
        for step, loss in enumerate(curve, 1):
            trial.report(step, loss=loss)
