"""Keras 3, on whichever backend KERAS_BACKEND names, with a callback that reports."""
import unittest

import support
from support import FettleTest, reports


@support.needs("keras")
class KerasTest(FettleTest):
    def setUp(self):
        import keras
        from fettle.integrations.keras import ReportCallback

        self.keras, self.callback = keras, ReportCallback

    def fit(self, metrics=None, loss="binary_crossentropy", **options):
        import numpy

        x = numpy.random.default_rng(0).normal(size=(64, 4)).astype("float32")
        model = self.keras.Sequential([self.keras.layers.Dense(1, activation="sigmoid")])
        model.compile("sgd", loss, metrics=["accuracy"])
        options = {"epochs": 2, "validation_split": 0.25, **options}
        return model.fit(x, (x[:, 0] > 0).astype("float32"), verbose=0, callbacks=[self.callback(metrics)], **options).history

    def test_each_epoch_is_a_step(self):
        history = None

        def fit():
            nonlocal history
            history = self.fit()

        found = reports(fit)
        self.assert_steps(found, 1, 2)
        self.assertEqual([line["val_loss"] for line in found], history["val_loss"])
        self.assertEqual(set(found[0]), {"step", "loss", "accuracy", "val_loss", "val_accuracy"})

    def test_steps_continue_from_an_epoch(self):
        self.assert_steps(reports(lambda: self.fit("loss", initial_epoch=2, epochs=4)), 3, 4)

    def test_nan_is_reported_as_nan(self):
        found = reports(lambda: self.fit("val_loss", loss=lambda y, z: self.keras.ops.mean(z) * float("nan")))
        self.assertTrue(all(line["val_loss"] != line["val_loss"] for line in found))

    def test_a_metric_that_is_absent_is_named(self):
        with self.assertRaisesRegex(ValueError, "Keras has no metric 'val_loss' at step 1; it has .*'loss'"):
            reports(lambda: self.fit("val_loss", validation_split=0))

    def test_nothing_is_printed_outside_fettle(self):
        self.assertEqual(reports(self.fit, inside=False), [])


if __name__ == "__main__":
    unittest.main()
