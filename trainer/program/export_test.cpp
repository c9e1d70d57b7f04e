// fettle-trainer --export as fettle export-model calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "api/trainer/trainer_json.h"
#include "base/json.h"
#include "trainer/files/safetensors.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/program.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

class ExportTest : public testing::Test {
 protected:
  ExportTest() {
    config_.data = write_synthetic(directory_, 200);
    config_.data.normalize = api::NormalizeConfig{.mean = 0.25, .std = 0.5};
    config_.model.layers = {conv(3), simple(api::LayerType::kBatchNorm), linear(4)};
    config_.training.backend = api::BackendKind::kReference;
    EXPECT_TRUE(
        write_file(directory_.file("config.json"), api::write_trainer_config(config_).dump()).ok());
    EXPECT_EQ(run({"--checkpoints", directory_.file("kept"), directory_.file("config.json")}), 0)
        << err();
  }

  int run(const std::vector<std::string>& options) {
    return run_trainer(directory_.file("out"), directory_.file("err"), options);
  }
  int export_to(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"--export", directory_.file(name), "--checkpoints",
                                        directory_.file("kept")};
    options.insert(options.end(), more.begin(), more.end());
    return run(options);
  }
  std::string err() { return written_to(directory_.file("err")); }
  std::string out() { return written_to(directory_.file("out")); }

  TemporaryDirectory directory_;
  api::TrainerConfig config_;
};

TEST_F(ExportTest, CarriesTheNetworkAndItsDescription) {
  ASSERT_EQ(export_to("m.safetensors", {"--origin", "digits/digits-3"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("m.safetensors"));
  const auto file =
      SafetensorsFile::parse(*map_file(directory_.file("m.safetensors")), "m.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->values("layers.0.weight", {3, 1, 3, 3}).ok());
  EXPECT_TRUE(file->values("layers.1.running_var", {3}).ok());
  EXPECT_TRUE(file->values("layers.2.weight", {4, 192}).ok());
  EXPECT_EQ(file->metadata().at("format"), "pt");
  const std::string& text = file->metadata().at("fettle");
  EXPECT_THAT(text, Not(HasSubstr(directory_.path()))) << "no file names of this machine";
  const auto about = parse_json(text);
  ASSERT_TRUE(about.ok()) << about.error().message;
  EXPECT_EQ(about->find("study")->as_string(), "digits");
  EXPECT_EQ(about->find("trial")->as_string(), "digits-3");
  EXPECT_FALSE(about->find("version")->as_string().empty());
  EXPECT_EQ(*about->find("step"), Json(1));
  EXPECT_EQ(about->find("input")->dump(), R"({"shape":[8,8,1],"type":"uint8"})");
  EXPECT_EQ(*about->find("classes"), Json(4));
  EXPECT_EQ(about->find("normalize")->find("mean")->as_double(), 0.25);
  EXPECT_EQ(about->find("normalize")->find("std")->as_double(), 0.5);
  EXPECT_NE(about->find("metrics")->find("validation_accuracy"), nullptr);
  EXPECT_THAT(about->find("model")->dump(), HasSubstr(R"("type":"batchNorm")"));
}

TEST_F(ExportTest, WritesTheEightBitNetworkIfThereIsOne) {
  EXPECT_EQ(export_to("m.onnx", {"--int8", "--format", "onnx"}), 2);
  EXPECT_THAT(err(), HasSubstr("the trial has no 8-bit network; train with training.quantize"));
  config_.training.quantize = api::QuantizeConfig{};
  ASSERT_TRUE(
      write_file(directory_.file("int8.json"), api::write_trainer_config(config_).dump()).ok());
  ASSERT_EQ(run({"--checkpoints", directory_.file("int8"), directory_.file("int8.json")}), 0)
      << err();
  const std::vector<std::string> asked = {"--checkpoints", directory_.file("int8"), "--int8"};
  EXPECT_EQ(export_to("m.safetensors", asked), 2);
  EXPECT_THAT(err(),
              HasSubstr("--int8 is for ONNX, which has integers; found --format safetensors"));
  std::vector<std::string> onnx = asked;
  onnx.insert(onnx.end(), {"--format", "onnx"});
  ASSERT_EQ(export_to("m.onnx", onnx), 0) << err();
  const std::string file = written_to(directory_.file("m.onnx"));
  for (const char* part :
       {"QuantizeLinear", "DequantizeLinear", "layers.0.weight_scale", "layers.0.bias_zero_point",
        "Gemm", "layers.2.weight_zero_point", R"("int8":true)"}) {
    EXPECT_THAT(file, HasSubstr(part));
  }
  EXPECT_THAT(file, Not(HasSubstr("BatchNormalization"))) << "it is folded";
  const std::string logits = directory_.file("logits.npy");
  EXPECT_EQ(run({"--predict", logits, "--checkpoints", directory_.file("int8"), "--int8"}), 0)
      << err();
  EXPECT_THAT(out(), HasSubstr("validation_accuracy"));
}

TEST_F(ExportTest, ReplacesAFileOnlyIfTold) {
  ASSERT_TRUE(write_file(directory_.file("m.safetensors"), "mine").ok());
  EXPECT_EQ(export_to("m.safetensors"), 2);
  EXPECT_THAT(err(), HasSubstr("m.safetensors exists; --force replaces it"));
  EXPECT_EQ(written_to(directory_.file("m.safetensors")), "mine");
  EXPECT_EQ(export_to("m.safetensors", {"--force"}), 0) << err();
  EXPECT_GT(std::filesystem::file_size(directory_.file("m.safetensors")), 1000U);
}

TEST_F(ExportTest, SaysWhatIsWrong) {
  EXPECT_EQ(run({"--export", directory_.file("x")}), 2);
  EXPECT_THAT(err(), HasSubstr("--export needs a checkpoint"));
  EXPECT_EQ(export_to("x", {"--origin", "digits"}), 2);
  EXPECT_THAT(err(), HasSubstr("--origin is \"digits\", expected STUDY/TRIAL"));
  EXPECT_EQ(export_to("x", {"--format", "pickle"}), 2);
  EXPECT_THAT(err(), HasSubstr("--format"));
  EXPECT_EQ(export_to("none/x"), 1);
  for (const auto& entry : std::filesystem::directory_iterator(directory_.file("kept"))) {
    if (entry.path().extension() == ".checkpoint") std::filesystem::resize_file(entry, 200);
  }
  EXPECT_EQ(export_to("x"), 2);
  EXPECT_THAT(err(), HasSubstr("none of the checkpoints in"));
  EXPECT_FALSE(std::filesystem::exists(directory_.file("x")));
}

}  // namespace
}  // namespace fettle::trainer
