"""The peers, each behind the protocol of `fettle suggest`: peers.py NAME reads studies, asks and tells.

Each adapter imports what it needs itself; memory and processor time are then its own."""
import contextlib
import io
import json
import sys
import warnings

import numpy as np

from problems import active, point_at


class Random:
    def __init__(self, study):
        self.space = study["space"]
        self.random = np.random.default_rng(study["seed"])
        self.count = 0

    def units(self):
        return self.random.random(len(self.space))

    def ask(self):
        self.count += 1
        return self.count - 1, point_at(self.space, self.units())

    def tell(self, trial, value):
        pass


class Sobol(Random):
    def __init__(self, study):
        super().__init__(study)
        from scipy.stats import qmc
        self.engine = qmc.Sobol(len(self.space), scramble=True, seed=study["seed"])

    def units(self):
        return self.engine.random(1)[0]


class Optuna:
    """Its samplers by ask and tell. Where one cannot do with conditions (`flat`) it is given every parameter, and
    what is not active is left out of the answer."""

    def __init__(self, study, make, flat=False):
        import optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.space, self.flat, self.running = study["space"], flat, {}
        self.study = optuna.create_study(sampler=make(optuna.samplers, study["seed"]))

    @staticmethod
    def value(trial, parameter):
        if parameter["type"] == "categorical":
            return trial.suggest_categorical(parameter["name"], parameter["choices"])
        suggest = trial.suggest_int if parameter["type"] == "int" else trial.suggest_float
        return suggest(parameter["name"], parameter["low"], parameter["high"], log=parameter["log"])

    def ask(self):
        trial, params = self.study.ask(), {}
        for parameter in self.space:
            exists = active(parameter, params)
            if exists or self.flat:
                value = self.value(trial, parameter)
                if exists:
                    params[parameter["name"]] = value
        self.running[trial.number] = trial
        return trial.number, params

    def tell(self, trial, value):
        self.study.tell(self.running.pop(trial), value)


class LeanHebo:
    """HEBO's Gaussian process, MACE and NSGA-II, as the leanhebo package has them, by its defaults."""

    def __init__(self, study):
        import leanhebo
        import torch
        from leanhebo.config import LeanHEBOConfig, RuntimeConfig
        from leanhebo.space import Categorical, Float, In, Integer, Space
        torch.set_num_threads(1)
        self.space, self.running, parameters = study["space"], {}, []
        for parameter in self.space:
            when = parameter.get("when")
            more = {"active_when": In(when["param"], tuple(when["in"]))} if when else {}
            if parameter["type"] == "categorical":
                parameters.append(Categorical(parameter["name"], tuple(parameter["choices"]), **more))
                continue
            kind = Integer if parameter["type"] == "int" else Float
            parameters.append(kind(parameter["name"], parameter["low"], parameter["high"], log=parameter["log"],
                                   **more))
        config = LeanHEBOConfig(runtime=RuntimeConfig(seed=study["seed"]))
        self.optimiser, self.count = leanhebo.LeanHEBO(Space(*parameters), config=config), 0

    def ask(self):
        record, params = self.optimiser.suggest(1).to_records()[0], {}
        kinds = {"int": int, "float": float, "categorical": str}
        for parameter in self.space:
            if active(parameter, params):
                params[parameter["name"]] = kinds[parameter["type"]](record[parameter["name"]])
        self.running[self.count] = record
        self.count += 1
        return self.count - 1, params

    def tell(self, trial, value):
        self.optimiser.observe([self.running.pop(trial)], np.array([value]))


class Ax:
    """Ax by its client's defaults: Sobol, then BoTorch. It knows no conditions: inactive values are left out."""

    def __init__(self, study):
        from ax.api.client import Client
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
        self.space, self.client, parameters = study["space"], Client(random_seed=study["seed"]), []
        for parameter in self.space:
            if parameter["type"] == "categorical":
                parameters.append(ChoiceParameterConfig(name=parameter["name"], values=parameter["choices"],
                                                        parameter_type="str", is_ordered=False))
                continue
            parameters.append(RangeParameterConfig(
                name=parameter["name"], bounds=(parameter["low"], parameter["high"]),
                parameter_type=parameter["type"], scaling="log" if parameter["log"] else None))
        self.client.configure_experiment(parameters=parameters)
        self.client.configure_optimization(objective="-loss")
        self.client.configure_generation_strategy(allow_exceeding_initialization_budget=True)

    def ask(self):
        trial, flat = next(iter(self.client.get_next_trials(max_trials=1).items()))
        params = {}
        for parameter in self.space:
            if active(parameter, params):
                params[parameter["name"]] = flat[parameter["name"]]
        return trial, params

    def tell(self, trial, value):
        self.client.complete_trial(trial, raw_data={"loss": value})


PEERS = {
    "random": Random,
    "sobol": Sobol,
    "optuna_tpe": lambda study: Optuna(study, lambda samplers, seed: samplers.TPESampler(seed=seed)),
    "optuna_gp": lambda study: Optuna(study, lambda samplers, seed: samplers.GPSampler(seed=seed), flat=True),
    "optuna_cmaes": lambda study: Optuna(
        study, lambda samplers, seed: samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False), flat=True),
    "leanhebo": LeanHebo,
    "ax": Ax,
}
QUICK = ["random", "sobol", "optuna_tpe"]
USUAL = QUICK + ["optuna_cmaes", "optuna_gp", "leanhebo"]
DEAR = ["leanhebo", "ax"]


def serve(name):
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, io.StringIO()  # what a library prints is no answer
    for line in sys.stdin:
        message = json.loads(line)
        with contextlib.redirect_stdout(io.StringIO()):
            if "study" in message:
                peer = PEERS[name](message["study"])
                continue
            if "tell" in message:
                peer.tell(message["tell"]["id"], message["tell"]["value"])
                continue
            trials = [peer.ask() for _ in range(message["ask"])]
        out.write(json.dumps({"trials": [{"id": trial, "params": params} for trial, params in trials]}) + "\n")
        out.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
