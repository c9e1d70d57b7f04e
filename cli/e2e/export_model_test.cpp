// fettle export-model: networks of the built-in trainer, and checkpoints of other programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

constexpr const char* kTrained = R"(apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: digits}
spec:
  objectives: [OBJECTIVES]
  parameters:
  - {name: lr, type: Double, min: 1e-5, max: 1e-1, scale: Log, sets: training.learningRate}
  resource: {unit: epoch, min: 1, max: 2}
  algorithm: {name: random, seed: 3}
  budget: {trials: 2, parallelism: 1}
  trial:
    trainer:
      data: {trainImages: images, trainLabels: labels, validationSamples: 40}
      model: {layers: [{type: flatten}, {type: linear, units: 3}]}
)";

constexpr const char* kOne = "{metric: validation_loss, direction: Minimize}";

Finished train(Workshop& shop, const std::string& objectives = kOne) {
  shop.write("images", idx_file({160, 8, 8}));
  shop.write("labels", idx_file({160}));
  std::string study = kTrained;
  study.replace(study.find("OBJECTIVES"), 10, objectives);
  shop.write("study.yaml", study);
  return shop.fettle({"run", "study.yaml"});
}

// The only file below the checkpoints of a trial that ends like that.
std::filesystem::path checkpoint_of(const Workshop& shop, const std::string& trial) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(shop.path(".fettle/digits/checkpoints"))) {
    const bool of_trial = entry.path().parent_path().filename() == trial;
    if (of_trial && entry.path().extension() == ".checkpoint") return entry.path();
  }
  return {};
}

TEST(ExportModel, WritesTheBestTrialsNetwork) {
  Workshop shop;
  ASSERT_EQ(train(shop).code, 0);
  const std::string best = shop.fettle({"best", "--output", "json"}).out;
  const Finished done = shop.fettle({"export-model"});
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string trial =
      best.find("\"digits-1\"") != std::string::npos ? "digits-1" : "digits-0";
  EXPECT_EQ(done.out, "Wrote " + trial + ".safetensors: trial " + trial + " at epoch 2.\n");
  const std::string file = shop.read(trial + ".safetensors");
  EXPECT_THAT(file, HasSubstr(R"("layers.1.weight":{"dtype":"F32","shape":[3,64])"));
  EXPECT_THAT(file, HasSubstr(R"(\"study\":\"digits\",\"trial\":\")" + trial));

  const Finished again = shop.fettle({"export-model", "digits"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr(trial + ".safetensors exists; --force replaces it"));
  EXPECT_EQ(shop.fettle({"export-model", "digits", "--force"}).code, 0);
  const Finished named =
      shop.fettle({"export-model", "digits", "--trial", "digits-0", "-o", "first.safetensors"});
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_THAT(shop.read("first.safetensors"), HasSubstr(R"(\"trial\":\"digits-0\")"));
  const Finished module = shop.fettle({"export-model", "--trial", "digits-0", "--format", "torch"});
  EXPECT_EQ(module.out, "Wrote digits_0.py and digits_0.safetensors: trial digits-0 at epoch 2.\n")
      << module.err;
  EXPECT_THAT(shop.read("digits_0.py"), HasSubstr("class Network(nn.Module):"));
  const Finished onnx = shop.fettle({"export-model", "--trial", "digits-0", "--format", "onnx"});
  EXPECT_EQ(onnx.out, "Wrote digits-0.onnx: trial digits-0 at epoch 2.\n") << onnx.err;
  EXPECT_THAT(shop.read("digits-0.onnx"), HasSubstr(R"("trial":"digits-0")"));
  const Finished copied =
      shop.fettle({"export-model", "--trial", "digits-0", "--format", "checkpoint"});
  EXPECT_EQ(copied.out, "Wrote digits-0-checkpoint: the checkpoints of trial digits-0.\n")
      << copied.err;
}

TEST(ExportModel, WritesTheEightBitNetwork) {
  Workshop shop;
  ASSERT_EQ(train(shop).code, 0);
  const Finished none = shop.fettle({"export-model", "--trial", "digits-0", "--int8"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("the trial has no 8-bit network; train with training.quantize"));
  std::string study = shop.read("study.yaml");
  study.replace(study.find("digits"), 6, "bytes");
  shop.write("bytes.yaml", study + "      training: {quantize: {calibration: percentile}}\n");
  ASSERT_EQ(shop.fettle({"run", "bytes.yaml"}).code, 0);
  const Finished done = shop.fettle({"export-model", "bytes", "--trial", "bytes-0", "--int8"});
  EXPECT_EQ(done.out, "Wrote bytes-0-int8.onnx: trial bytes-0 at epoch 2.\n") << done.err;
  EXPECT_THAT(shop.read("bytes-0-int8.onnx"), HasSubstr("DequantizeLinear"));
}

TEST(ExportModel, SaysWhatIsWrong) {
  Workshop shop;
  ASSERT_EQ(train(shop).code, 0);
  const Finished other = shop.fettle({"export-model", "--trial", "digits-7"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("study digits has 2 trials and none is called digits-7"));
  EXPECT_EQ(shop.fettle({"export-model", "--format", "pickle"}).code, 2);
  const Finished far = shop.fettle({"export-model", "-o", "none/x.safetensors"});
  EXPECT_EQ(far.code, 3);
  EXPECT_THAT(far.err, HasSubstr("none/x.safetensors"));

  const std::filesystem::path file = checkpoint_of(shop, "digits-0");
  ASSERT_FALSE(file.empty());
  std::filesystem::path next = file;
  while (!(next = checkpoint_of(shop, "digits-0")).empty()) {
    if (next.parent_path() != file.parent_path()) break;
    std::filesystem::resize_file(next, 100);
    std::filesystem::rename(next, next.string() + ".cut");
  }
  const Finished none = shop.fettle({"export-model", "--trial", "digits-0"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no checkpoint in "));
  std::filesystem::rename(file.string() + ".cut", file);
  const Finished cut = shop.fettle({"export-model", "--trial", "digits-0"});
  EXPECT_EQ(cut.code, 2);
  EXPECT_THAT(cut.err, HasSubstr("none of the checkpoints in"));
  EXPECT_FALSE(shop.exists("digits-0.safetensors"));
}

TEST(ExportModel, ChoosesNoTrialOfAFront) {
  Workshop shop;
  ASSERT_EQ(train(shop,
                  "{metric: validation_loss, direction: Minimize}, "
                  "{metric: loss, direction: Maximize}")
                .code,
            0);
  const Finished done = shop.fettle({"export-model"});
  if (done.code == 0) GTEST_SKIP() << "one trial is best in both";
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("has 2 best trials; choose one with --trial: digits-"));
}

TEST(ExportModel, CopiesTheCheckpointsOfAProgram) {
  Workshop shop;
  StudyText study;
  study.budget = "{trials: 1}";
  study.script =
      "mkdir -p \"$FETTLE_CHECKPOINTS/deep\"; echo w > "
      "\"$FETTLE_CHECKPOINTS/deep/weights\"; "
      "echo '{\"value\": 1}'";
  shop.write("study.yaml", study.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  const Finished done = shop.fettle({"export-model", "-o", "best"});
  EXPECT_EQ(done.out, "Wrote best: the checkpoints of trial digits-0.\n") << done.err;
  EXPECT_EQ(shop.read("best/deep/weights"), "w\n");
  const Finished again = shop.fettle({"export-model", "-o", "best/"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("best exists; --force replaces it"));
  shop.write("best/mine", "old");
  EXPECT_EQ(shop.fettle({"export-model", "-o", "best", "--force"}).code, 0);
  EXPECT_FALSE(shop.exists("best/mine"));
  EXPECT_TRUE(shop.exists("best/deep/weights"));
  const Finished other = shop.fettle({"export-model", "--format", "safetensors"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("--format checkpoint copies"));
}

TEST(ExportModel, OfATrialWithoutAnyIsAnError) {
  Workshop shop;
  StudyText study;
  study.budget = "{trials: 1}";
  shop.write("study.yaml", study.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  const Finished done = shop.fettle({"export-model"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("the trial kept no checkpoint"));
  EXPECT_THAT(shop.fettle({"export-model", "digit"}).err, HasSubstr("no study 'digit' in .fettle"));
}

TEST(ExportModel, OfAStudyWithoutAResultIsAnError) {
  Workshop shop;
  StudyText study;
  study.budget = "{trials: 1}";
  study.script = "exit 3";
  shop.write("study.yaml", study.yaml());
  (void)shop.fettle({"run", "study.yaml"});
  const Finished done = shop.fettle({"export-model"});
  EXPECT_EQ(done.code, 1);
  EXPECT_EQ(done.err, "fettle: study digits has no result yet\n");
}

}  // namespace
}  // namespace fettle::e2e
