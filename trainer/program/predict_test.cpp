// fettle-trainer --predict as users call it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "api/trainer/trainer_json.h"
#include "base/json.h"
#include "trainer/data/npy.h"
#include "trainer/data/training_data.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/program.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

class PredictTest : public testing::Test {
 protected:
  PredictTest() {
    config_.data = write_synthetic(directory_, 400);
    config_.model.layers = {conv(3), simple(api::LayerType::kBatchNorm), linear(4)};
    config_.training.backend = api::BackendKind::kReference;
    config_.training.global_batch = 32;
    config_.training.epochs = 2;
  }

  int run(const std::vector<std::string>& options) {
    return run_trainer(directory_.file("out"), directory_.file("err"), options);
  }
  int train() {
    EXPECT_TRUE(
        write_file(directory_.file("config.json"), api::write_trainer_config(config_).dump()).ok());
    return run({"--checkpoints", directory_.file("kept"), directory_.file("config.json")});
  }
  std::string err() { return written_to(directory_.file("err")); }
  Json last_line() {
    std::string text = written_to(directory_.file("out"));
    text.pop_back();
    return *parse_json(text.substr(text.rfind('\n') + 1), {.allow_non_finite = true});
  }
  std::vector<std::string> predict(const std::string& output,
                                   const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"--predict", directory_.file(output), "--checkpoints",
                                        directory_.file("kept")};
    options.insert(options.end(), more.begin(), more.end());
    return options;
  }
  NpyArray read(const std::string& name) {
    auto array = parse_npy(*map_file(directory_.file(name)), name);
    EXPECT_TRUE(array.ok()) << array.error().message;
    return *array;
  }
  template <class T>
  std::vector<T> values(const std::string& name) {
    const NpyArray array = read(name);
    std::vector<T> all(array.values.size() / sizeof(T));
    std::memcpy(all.data(), array.values.view().data(), array.values.size());
    return all;
  }
  // Writes these samples of the training images by numpy.save's format.
  void write_inputs(const std::string& name, const std::vector<std::int64_t>& samples) {
    DataCache off("");
    const auto data = load_training_data(config_.data, off);
    ASSERT_TRUE(data.ok());
    std::string file = npy_head("|u1", {std::ssize(samples), 8, 8});
    for (const std::int64_t i : samples) {
      file.append(reinterpret_cast<const char*>(data->images.image(i)), 64);
    }
    ASSERT_TRUE(write_file(directory_.file(name), file).ok());
  }

  TemporaryDirectory directory_;
  api::TrainerConfig config_;
};

TEST_F(PredictTest, GivesTheScoresOfTheValidation) {
  ASSERT_EQ(train(), 0) << err();
  const Json trained = last_line();
  ASSERT_EQ(run(predict("logits.npy")), 0) << err();
  const Json line = last_line();
  EXPECT_EQ(*line.find("samples"), Json(100));
  EXPECT_EQ(*line.find("classes"), Json(4));
  EXPECT_EQ(*line.find("step"), Json(2));
  EXPECT_EQ(line.find("validation_accuracy")->as_double(),
            trained.find("validation_accuracy")->as_double());
  EXPECT_NEAR(line.find("validation_loss")->as_double(),
              trained.find("validation_loss")->as_double(), 1e-6);
  EXPECT_EQ(read("logits.npy").shape, (std::vector<std::int64_t>{100, 4}));
  EXPECT_EQ(read("logits.samples.npy").shape, (std::vector<std::int64_t>{100}));
}

TEST_F(PredictTest, TakesSamplesWithoutLabels) {
  ASSERT_EQ(train(), 0) << err();
  ASSERT_EQ(run(predict("validation.npy")), 0) << err();
  write_inputs("inputs.npy", values<std::int64_t>("validation.samples.npy"));
  ASSERT_EQ(run(predict("named.npy", {"--inputs", directory_.file("inputs.npy")})), 0) << err();
  EXPECT_EQ(values<float>("named.npy"), values<float>("validation.npy"));
  EXPECT_EQ(last_line().find("validation_loss"), nullptr);
  EXPECT_FALSE(std::filesystem::exists(directory_.file("named.samples.npy")));
}

TEST_F(PredictTest, OfATextGivesLogitsForEachToken) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "to be or not to be ";
  ASSERT_TRUE(write_file(directory_.file("text"), text).ok());
  config_.data = {};
  config_.data.format = "text";
  config_.data.train_text = directory_.file("text");
  config_.data.context = 8;
  config_.model.layers.clear();
  config_.model.gpt = api::GptConfig{.layers = 1, .heads = 2, .width = 8};
  ASSERT_EQ(train(), 0) << err();
  const Json trained = last_line();
  ASSERT_EQ(run(predict("logits.npy")), 0) << err();
  EXPECT_NEAR(last_line().find("validation_loss")->as_double(),
              trained.find("validation_loss")->as_double(), 1e-6);
  const NpyArray logits = read("logits.npy");
  ASSERT_EQ(logits.shape.size(), 3U);
  EXPECT_EQ(logits.shape[1], 8);
  EXPECT_EQ(logits.shape[2], 7);  // " benort"
  const std::string ids = npy_head("|u1", {1, 8}) + std::string("\1\2\3\4\5\6\1\2", 8);
  ASSERT_TRUE(write_file(directory_.file("ids.npy"), ids).ok());
  EXPECT_EQ(run(predict("one.npy", {"--inputs", directory_.file("ids.npy")})), 0) << err();
  EXPECT_EQ(read("one.npy").shape, (std::vector<std::int64_t>{1, 8, 7}));
  ASSERT_TRUE(write_file(directory_.file("ids.npy"), npy_head("|u1", {1, 8}) + "01234567").ok());
  EXPECT_EQ(run(predict("one.npy", {"--inputs", directory_.file("ids.npy")})), 2);
  EXPECT_THAT(err(), HasSubstr("has the token 48; expected 0 to 6"));
}

TEST_F(PredictTest, SaysWhatIsWrong) {
  EXPECT_EQ(run({"--predict", directory_.file("x.npy")}), 2);
  EXPECT_THAT(err(), HasSubstr("--predict needs a checkpoint"));
  EXPECT_EQ(run({"--inputs", "x.npy"}), 2);
  EXPECT_THAT(err(), HasSubstr("--inputs is for --predict"));
  EXPECT_EQ(run(predict("x.npy")), 2);
  EXPECT_THAT(err(), HasSubstr("there is no checkpoint in"));
  ASSERT_EQ(train(), 0) << err();
  const std::string wide = npy_head("|u1", {2, 8, 9}) + std::string(144, '\1');
  ASSERT_TRUE(write_file(directory_.file("wide.npy"), wide).ok());
  EXPECT_EQ(run(predict("x.npy", {"--inputs", directory_.file("wide.npy")})), 2);
  EXPECT_THAT(err(), HasSubstr("has images 8×9×1 of uint8; the network was trained on 8×8×1"));
  EXPECT_EQ(run(predict("none/x.npy")), 1);
  EXPECT_THAT(err(), HasSubstr("none/x.npy"));
  const SyntheticImages others(400, /*seed=*/2);
  ASSERT_TRUE(write_file(config_.data.train_images, idx({400, 8, 8}, others.pixels)).ok());
  EXPECT_EQ(run(predict("x.npy")), 2);
  EXPECT_THAT(err(), HasSubstr("was trained on other data"));
  EXPECT_FALSE(std::filesystem::exists(directory_.file("x.npy")));
  for (const auto& entry : std::filesystem::directory_iterator(directory_.file("kept"))) {
    if (entry.path().extension() == ".checkpoint") std::filesystem::resize_file(entry, 200);
  }
  EXPECT_EQ(run(predict("x.npy")), 2);
  EXPECT_THAT(err(), HasSubstr("none of the checkpoints in"));
}

}  // namespace
}  // namespace fettle::trainer
