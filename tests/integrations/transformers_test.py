"""The Trainer of transformers with a callback that reports its evaluations."""
import tempfile
import unittest

import support
from support import FettleTest, reports


@support.needs("transformers")
class TransformersTest(FettleTest):
    def setUp(self):
        import torch
        import transformers
        from fettle.integrations.transformers import ReportCallback

        class Samples(torch.utils.data.Dataset):
            def __len__(self):
                return 32

            def __getitem__(self, index):
                return {"input_ids": torch.tensor([index % 16, 1]), "labels": torch.tensor(index % 2)}

        transformers.utils.logging.set_verbosity_error()
        self.library, self.callback, self.samples = transformers, ReportCallback, Samples()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def train(self, metrics=None, every="epoch", evaluated=None, **options):
        """Two epochs of four steps, with evaluations before and after the training."""
        settings = self.library.TrainingArguments(
            output_dir=self.folder, num_train_epochs=2, per_device_train_batch_size=8, report_to=[], disable_tqdm=True,
            use_cpu=True, eval_strategy=every, **{"save_strategy": "no", **options})
        shape = {"vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
        model = self.library.BertForSequenceClassification(self.library.BertConfig(**shape))
        self.trainer = self.library.Trainer(
            model=model, args=settings, train_dataset=self.samples, eval_dataset=evaluated or self.samples,
            callbacks=[self.callback(metrics)])
        self.trainer.evaluate()
        self.trainer.train()
        self.trainer.evaluate()

    def test_each_epoch_is_a_step(self):
        found = reports(self.train)
        self.assert_steps(found, 1, 2)
        history = [line["eval_loss"] for line in self.trainer.state.log_history if "eval_loss" in line]
        self.assertEqual([line["eval_loss"] for line in found], history[:2])  # train() begins a new history

    def test_steps_of_the_optimizer(self):
        self.assert_steps(reports(lambda: self.train("eval_loss", "steps", eval_steps=3)), 3, 6, *self.last_step())

    def last_step(self):
        """A training of transformers 5 ends with an evaluation at its last step."""
        return [8] if int(self.library.__version__.partition(".")[0]) >= 5 else []

    def test_several_data_sets_are_one_report(self):
        found = reports(lambda: self.train({"a": "eval_a_loss", "b": "eval_b_loss"}, evaluated={"a": self.samples, "b": self.samples}))
        self.assert_steps(found, 1, 2)
        self.assertEqual(set(found[0]), {"step", "a", "b"})

    def test_a_report_follows_the_checkpoint(self):
        import pathlib

        seen = []
        chosen = self.callback.__init__.__globals__["report_chosen"]
        self.addCleanup(self.callback.__init__.__globals__.update, report_chosen=chosen)
        self.callback.__init__.__globals__["report_chosen"] = lambda step, *rest: seen.append(
            (step, sorted(path.name for path in pathlib.Path(self.folder).glob("checkpoint-*"))))
        self.train(save_strategy="epoch")
        self.assertEqual(seen, [(1, ["checkpoint-4"]), (2, ["checkpoint-4", "checkpoint-8"])])

    def test_a_metric_that_is_absent_is_named(self):
        with self.assertRaisesRegex(ValueError, "the evaluation has no metric 'accuracy' at step 1; it has 'eval_loss'"):
            reports(lambda: self.train("accuracy"))

    def test_nothing_is_printed_outside_fettle(self):
        self.assertEqual(reports(self.train, inside=False), [])


if __name__ == "__main__":
    unittest.main()
