"""SearchCV as a search of scikit-learn: what GridSearchCV and RandomizedSearchCV promise holds for it."""
import contextlib
import io
import unittest
import warnings

import support

import fettle


def samples():
    from sklearn.datasets import make_classification

    return make_classification(120, 6, random_state=0)


@support.needs("sklearn")
class SearchCVTest(unittest.TestCase):
    SPACE = {"C": fettle.loguniform(1e-3, 1e2), "fit_intercept": fettle.boolean()}

    def search(self, space=None, n_trials=6, random_state=1, **options):
        from sklearn.linear_model import LogisticRegression
        from fettle.sklearn import SearchCV

        return SearchCV(LogisticRegression(), space or self.SPACE, n_trials=n_trials, random_state=random_state,
                        cv=options.pop("cv", 3), **options)

    def test_fits_refits_and_predicts(self):
        x, y = samples()
        search = self.search().fit(x, y)
        results = search.cv_results_
        self.assertEqual(len(results["params"]), 6)
        self.assertEqual(search.best_params_, results["params"][search.best_index_])
        self.assertEqual(search.best_score_, max(results["mean_test_score"]))
        self.assertEqual(search.best_estimator_.C, search.best_params_["C"])
        self.assertEqual(len(search.predict(x)), 120)
        self.assertIn("param_C", results)

    def test_the_same_random_state_gives_the_same(self):
        x, y = samples()
        first = self.search().fit(x, y).cv_results_["params"]
        self.assertEqual(self.search(n_jobs=2).fit(x, y).cv_results_["params"], first)
        self.assertNotEqual(self.search(random_state=2).fit(x, y).cv_results_["params"], first)

    def test_it_learns(self):
        """The searched value is found far more closely than 30 random trials would."""
        from sklearn.base import BaseEstimator
        from fettle.sklearn import SearchCV

        class Near(BaseEstimator):
            def __init__(self, at=0.0, kind="bad"):
                self.at, self.kind = at, kind

            def fit(self, x, y=None):
                return self

            def score(self, x, y=None):
                return -abs(self.at - 3.7) - (self.kind == "bad")

        space = {"at": fettle.uniform(-100, 100), "kind": fettle.choice("bad", "good")}
        x, y = samples()
        found = SearchCV(Near(), space, n_trials=30, random_state=0, cv=2, refit=False).fit(x, y)
        self.assertGreater(found.best_score_, -1)
        self.assertEqual(found.best_params_["kind"], "good")

    def test_batches_are_whole_and_end_in_time(self):
        self.assertEqual(len(self.search(n_trials=7, batch_size=3).fit(*samples()).cv_results_["params"]), 7)

    def test_a_small_space_ends_early(self):
        found = self.search({"fit_intercept": fettle.boolean()}, n_trials=10).fit(*samples())
        self.assertEqual(len(found.cv_results_["params"]), 2)

    def test_conditional_parameters(self):
        from sklearn.svm import SVC
        from fettle.sklearn import SearchCV

        space = {"kernel": fettle.choice("linear", "rbf"), "gamma": fettle.loguniform(1e-4, 1, when={"kernel": "rbf"})}
        found = SearchCV(SVC(), space, n_trials=8, random_state=0, cv=2).fit(*samples()).cv_results_["params"]
        for one in found:
            self.assertEqual("gamma" in one, one["kernel"] == "rbf")

    def test_pipelines_and_several_metrics(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from fettle.sklearn import SearchCV

        model = make_pipeline(StandardScaler(), LogisticRegression())
        space = {"logisticregression__C": fettle.loguniform(1e-3, 1e3)}
        search = SearchCV(model, space, n_trials=4, scoring=["roc_auc", "accuracy"], refit="roc_auc", cv=3, random_state=0)
        results = search.fit(*samples()).cv_results_
        self.assertEqual(search.best_score_, max(results["mean_test_roc_auc"]))
        search.set_params(refit=False)
        with self.assertRaisesRegex(ValueError, r"several metrics \('roc_auc', 'accuracy'\): refit must name"):
            search.fit(*samples())

    def test_fits_that_fail_are_infeasible(self):
        space = {"C": fettle.uniform(-1, 1)}  # at most 0 is an error of the estimator
        for batch_size in (1, 4):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                search = self.search(space, n_trials=12, batch_size=batch_size).fit(*samples())
            self.assertGreater(search.best_params_["C"], 0)
            scores = search.cv_results_["mean_test_score"]
            self.assertTrue(len(scores) < 12 or any(score != score for score in scores), "some candidates must have failed")

    def test_a_search_of_failures_alone_says_so(self):
        with warnings.catch_warnings(), self.assertRaisesRegex(ValueError, "fits failed"):
            warnings.simplefilter("ignore")
            self.search({"C": fettle.uniform(-2, -1)}).fit(*samples())
        with self.assertRaisesRegex(ValueError, "'C' parameter of LogisticRegression must be"):
            self.search({"C": fettle.uniform(-2, -1)}, error_score="raise").fit(*samples())

    def test_bad_input_says_what_to_do(self):
        for options, error in (({"space": {"C": (0, 1)}}, "expected uniform"), ({"n_trials": 0}, "n_trials must be at least 1"),
                               ({"batch_size": 0}, "batch_size must be at least 1"), ({"algorithm": "annealing"}, "annealing")):
            with self.subTest(options), self.assertRaisesRegex((TypeError, ValueError, fettle.FettleError), error):
                self.search(**options).fit(*samples())
        with self.assertRaisesRegex(ValueError, "choice: give at least one value"):
            fettle.choice()
        with self.assertRaisesRegex(ValueError, "Invalid parameter 'c' for estimator"):
            self.search({"c": fettle.uniform(0, 1)}).fit(*samples())

    def test_clones_and_pickles(self):
        import pickle

        from sklearn.base import clone

        search = clone(self.search())
        again = pickle.loads(pickle.dumps(search.fit(*samples())))
        self.assertEqual(again.best_params_, search.best_params_)

    def test_passes_the_checks_of_scikit_learn(self):
        """Checks that RandomizedSearchCV itself passes, in whichever version this is."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import RandomizedSearchCV
        from fettle.sklearn import SearchCV

        peer = failed_checks(RandomizedSearchCV(LogisticRegression(), {"C": [0.1, 1]}, n_iter=2, random_state=0))
        found = failed_checks(SearchCV(LogisticRegression(), {"C": fettle.choice(0.1, 1)}, n_trials=2, random_state=0))
        self.assertGreater(found.pop("all"), 30)
        peer.pop("all")
        self.assertEqual({name: why for name, why in found.items() if name not in peer}, {})


def failed_checks(estimator):
    """Name of each failed check of scikit-learn -> why; `all`: how many ran."""
    try:
        from sklearn.utils.estimator_checks import estimator_checks_generator
    except ImportError:  # before 1.6
        from sklearn.utils.estimator_checks import check_estimator

        def estimator_checks_generator(one):
            return check_estimator(one, generate_only=True)

    out = {"all": 0}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for one, check in estimator_checks_generator(estimator):
            out["all"] += 1
            try:
                check(one)
            except unittest.SkipTest:
                pass
            except Exception as error:
                out[getattr(check, "func", check).__name__] = repr(error)
    return out


if __name__ == "__main__":
    unittest.main()
