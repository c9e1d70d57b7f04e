"""FettleSampler in studies of Optuna: it learns from every trial that it can learn from, and from no other."""
import pickle
import tempfile
import unittest
import warnings

import support


@support.needs("optuna")
class FettleSamplerTest(unittest.TestCase):
    def setUp(self):
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
        from fettle.optuna import FettleSampler

        optuna.logging.set_verbosity(optuna.logging.CRITICAL)
        self.optuna, self.sampler = optuna, FettleSampler
        self.space = {"x": FloatDistribution(-5, 5), "rate": FloatDistribution(1e-5, 1, log=True),
                      "n": IntDistribution(1, 9, step=2), "share": FloatDistribution(0, 1, step=0.25),
                      "kind": CategoricalDistribution([None, "a", True, 1.5])}

    def objective(self, trial):
        x, rate = trial.suggest_float("x", -5, 5), trial.suggest_float("rate", 1e-5, 1, log=True)
        n, share = trial.suggest_int("n", 1, 9, step=2), trial.suggest_float("share", 0, 1, step=0.25)
        kind = trial.suggest_categorical("kind", [None, "a", True, 1.5])
        return (x - 1) ** 2 + abs(n - 5) + (share - 0.5) ** 2 + (kind is not None) + rate

    def study(self, space=None, seed=1, **options):
        return self.optuna.create_study(sampler=self.sampler(space, seed=seed), **options)

    def search_of(self, study):
        return study.sampler._searches[study.study_name]

    def test_finds_the_minimum_of_a_mixed_space(self):
        study = self.study(self.space)
        study.optimize(self.objective, n_trials=50)
        self.assertLess(study.best_value, 0.1)
        self.assertIsNone(study.best_params["kind"])
        self.assertEqual(study.best_params["n"], 5)

    def test_the_space_is_found_from_the_trials(self):
        study = self.study()
        study.optimize(self.objective, n_trials=50)
        self.assertLess(study.best_value, 0.1)

    def test_every_parameter_is_the_proposed_one(self):
        """None was drawn by the sampler for parameters outside the space."""
        study = self.study(self.space)
        study.sampler._independent.sample_independent = None
        study.optimize(self.objective, n_trials=10)
        self.assertEqual(len(study.trials), 10)

    def test_the_same_seed_gives_the_same_trials(self):
        def parameters(seed):
            study = self.study(self.space, seed)
            study.optimize(self.objective, n_trials=15)
            return [trial.params for trial in study.trials]

        self.assertEqual(parameters(4), parameters(4))
        self.assertNotEqual(parameters(4), parameters(5))
        self.assertNotEqual(parameters(None), parameters(None))

    def test_threads_share_a_search(self):
        study = self.study(self.space)
        study.optimize(self.objective, n_trials=40, n_jobs=4)
        self.assertEqual({trial.state.name for trial in study.trials}, {"COMPLETE"})
        self.assertEqual(self.search_of(study)._taught, set(range(40)))
        self.assertEqual(self.search_of(study)._asked, {})
        points = [tuple(trial.params.values()) for trial in study.trials]
        self.assertEqual(len(set(points)), 40)

    def test_a_stored_study_is_resumed(self):
        with tempfile.TemporaryDirectory() as folder:
            options = {"storage": f"sqlite:///{folder}/study.db", "study_name": "stored", "load_if_exists": True}
            self.study(self.space, **options).optimize(self.objective, n_trials=25)
            resumed = self.study(self.space, **options)
            resumed.optimize(self.objective, n_trials=15)
            self.assertEqual(self.search_of(resumed)._taught, set(range(40)))
            points = [tuple(trial.params.values()) for trial in resumed.trials]
            self.assertEqual(len(set(points)), 40)
            later = sorted(trial.value for trial in resumed.trials[25:])
            self.assertLess(later[len(later) // 2], 1, "the first 25 trials taught the search nothing")

    def test_another_process_teaches_through_the_storage(self):
        with tempfile.TemporaryDirectory() as folder:
            options = {"storage": f"sqlite:///{folder}/study.db", "study_name": "shared", "load_if_exists": True}
            one, other = self.study(self.space, 1, **options), self.study(self.space, 2, **options)
            for _ in range(3):
                one.optimize(self.objective, n_trials=2)
                other.optimize(self.objective, n_trials=2)
            self.assertEqual(self.search_of(other)._taught, set(range(12)))

    def test_trials_outside_the_space_are_passed_over(self):
        study = self.study(self.space)
        add = self.optuna.trial.create_trial
        wide = {**self.space, "x": self.optuna.distributions.FloatDistribution(-50, 50),
                "kind": self.optuna.distributions.CategoricalDistribution(["a", "new"])}
        point = {"x": 0.5, "rate": 0.1, "n": 5, "share": 0.5, "kind": "a"}
        for change in ({}, {"x": 20.0}, {"kind": "new"}):
            study.add_trial(add(params={**point, **change}, distributions=wide, value=1.0))
        study.add_trial(add(params={"x": 1.0}, distributions={"x": self.space["x"]}, value=1.0))
        with self.assertWarnsRegex(UserWarning, "3 of 4 trials of the study .* are outside the space of FettleSampler"):
            study.optimize(self.objective, n_trials=5)
        self.assertEqual(len(study.trials), 9)
        self.assertEqual(self.search_of(study)._search.best.value, study.best_value)

    def test_enqueued_points_are_tried_and_learned(self):
        study = self.study(self.space)
        study.enqueue_trial({"x": 1.0, "rate": 1e-5, "n": 5, "share": 0.5, "kind": None})
        study.enqueue_trial({"x": 0.25})
        study.enqueue_trial({"x": 77.0})  # the user's own range is narrower, too: Optuna warns
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study.optimize(self.objective, n_trials=6)
        first, second = study.trials[:2]
        self.assertEqual((first.params["x"], first.params["kind"]), (1.0, None))
        self.assertEqual(second.params["x"], 0.25)
        self.assertEqual(self.search_of(study)._search.best.value, study.best_value)

    def test_pruned_and_failed_trials(self):
        def objective(trial):
            value = self.objective(trial)
            trial.report(value, 1)
            if trial.number % 3 == 0:
                raise self.optuna.TrialPruned
            if trial.number % 3 == 1:
                raise RuntimeError("no result")
            return float("nan") if trial.number == 2 else value

        study = self.study(self.space)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study.optimize(objective, n_trials=12, catch=(RuntimeError,))
        self.assertEqual([trial.state.name for trial in study.trials[:3]], ["PRUNED", "FAIL", "FAIL"])
        self.assertEqual(self.search_of(study)._asked, {})
        ended = [trial.values[0] for trial in study.trials if trial.state.name == "COMPLETE"]
        pruned = [trial.intermediate_values[1] for trial in study.trials if trial.state.name == "PRUNED"]
        self.assertEqual(self.search_of(study)._search.best.value, min(ended + pruned))

    def test_several_objectives(self):
        def objective(trial):
            x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", 0, 1)
            return x + y, -(x**2) - y

        space = {"x": self.space["x"], "y": self.optuna.distributions.FloatDistribution(0, 1)}
        study = self.study(space, directions=["maximize", "minimize"])
        study.optimize(objective, n_trials=30)
        search = self.search_of(study)._search
        found = {(one.params["x"], one.params["y"]) for one in search.front}
        self.assertEqual(found, {(trial.params["x"], trial.params["y"]) for trial in study.best_trials})

    def test_parameters_of_some_trials_alone(self):
        def objective(trial):
            kind = trial.suggest_categorical("kind", ["a", "b"])
            return trial.suggest_float("x", 0, 1) + (trial.suggest_float("deep", 0, 1) if kind == "a" else 2)

        study = self.study(seed=0)
        study.optimize(objective, n_trials=30)
        self.assertEqual(set(self.search_of(study).space), {"kind", "x"})
        self.assertEqual(study.best_params["kind"], "a")

    def test_a_used_up_space_ends_in_random_draws(self):
        study = self.study({"n": self.optuna.distributions.IntDistribution(1, 3)})
        study.optimize(lambda trial: trial.suggest_int("n", 1, 3), n_trials=8)
        self.assertEqual({trial.params["n"] for trial in study.trials[:3]}, {1, 2, 3})
        self.assertEqual(len(study.trials), 8)

    def test_a_range_that_the_objective_narrows(self):
        study = self.study(self.space)
        study.optimize(lambda trial: trial.suggest_float("x", 4, 5), n_trials=10)
        self.assertTrue(all(4 <= trial.params["x"] <= 5 for trial in study.trials))

    def test_copies_learn_from_the_storage(self):
        study = self.study(self.space)
        study.optimize(self.objective, n_trials=5)
        study.sampler = pickle.loads(pickle.dumps(study.sampler))
        study.optimize(self.objective, n_trials=5)
        self.assertEqual(self.search_of(study)._taught, set(range(10)))

    def test_bad_spaces_say_what_to_do(self):
        from fettle import FettleError, uniform

        with self.assertRaisesRegex(ValueError, "the space is empty; leave it out"):
            self.sampler({})
        with self.assertRaisesRegex(TypeError, "'x': expected a distribution of Optuna, such as FloatDistribution"):
            self.sampler({"x": uniform(0, 1)})
        with self.assertRaisesRegex(ValueError, "one or more elements"):
            self.optuna.distributions.CategoricalDistribution([])
        study = self.optuna.create_study(sampler=self.sampler(self.space, algorithm="annealing"))
        with self.assertRaisesRegex(FettleError, "annealing"):
            study.optimize(self.objective, n_trials=1)


if __name__ == "__main__":
    unittest.main()
