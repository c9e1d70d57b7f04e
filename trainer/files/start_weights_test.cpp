// Files are made from a network's own weights, renamed as another program has them.
#include "trainer/files/start_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "base/file.h"
#include "trainer/files/named_weights.h"
#include "trainer/files/safetensors.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/resnet.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::AllOf;
using testing::HasSubstr;

struct FileArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
using Arrays = std::vector<FileArray>;

NetworkPlan plan_of(const std::vector<api::LayerConfig>& layers,
                    const kernels::ImageShape& input = {8, 8, 3}) {
  api::ModelConfig model;
  model.layers = layers;
  auto plan = plan_network(model, input, 4);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

NetworkPlan gpt_plan(std::int64_t layers, std::int64_t context) {
  api::ModelConfig model;
  model.gpt = {.layers = layers, .heads = 2, .width = 8};
  auto plan = plan_network(model, SampleFormat{{context, 1, 1}, 11, true, "11 tokens"});
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

// Two convolutions with norms and a linear layer.
std::vector<api::LayerConfig> small_layers() {
  return {conv(4),  simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
          conv(5),  simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
          linear(4)};
}

Arrays arrays_of(const NetworkPlan& plan, const InitialValues& values) {
  Arrays arrays;
  for (const NamedWeight& weight : named_weights(plan)) {
    const auto& from = weight.of_statistics ? values.statistics : values.weights;
    arrays.push_back({weight.name, weight.shape, values_of(weight, from)});
  }
  return arrays;
}

// With these names in place of ours.
void rename_to(Arrays& arrays, const std::vector<std::string>& modules) {
  std::size_t module = 0;
  std::string last;
  for (FileArray& array : arrays) {
    const std::string prefix = array.name.substr(0, array.name.rfind('.'));
    if (!last.empty() && prefix != last) ++module;
    last = prefix;
    array.name = modules[module] + array.name.substr(prefix.size());
  }
}

void transpose(FileArray& array) {
  const auto rows = static_cast<std::size_t>(array.shape[0]);
  const auto columns = static_cast<std::size_t>(array.shape[1]);
  const std::vector<float> from = array.values;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) array.values[c * rows + r] = from[r * columns + c];
  }
  std::ranges::reverse(array.shape);
}

class StartWeightsTest : public testing::Test {
 protected:
  void write(const Arrays& arrays) {
    std::vector<NamedArray> named;
    for (const FileArray& array : arrays) named.push_back({array.name, array.shape, array.values});
    ASSERT_TRUE(write_file(start_.file, encode_safetensors(named, {})).ok());
  }

  // Loads the file into initial values of another seed.
  Result<std::string> load(const NetworkPlan& plan) {
    values_ = initial_values(plan, /*seed=*/2);
    return load_start_weights(start_, plan, values_);
  }

  void expect_values(const InitialValues& expected) {
    EXPECT_EQ(values_.weights, expected.weights);
    EXPECT_EQ(values_.statistics, expected.statistics);
  }

  TemporaryDirectory directory_;
  api::StartConfig start_{.file = directory_.file("start.safetensors"), .fresh = {}};
  InitialValues values_;
};

// Statistics differ from their initial values, too.
InitialValues trained_values(const NetworkPlan& plan) {
  InitialValues values = initial_values(plan, /*seed=*/1);
  for (float& value : values.statistics) value += value > 0 ? 0.25F : 0;
  return values;
}

TEST_F(StartWeightsTest, ComeFromAFileOfOurs) {
  const NetworkPlan plan = plan_of(small_layers());
  const InitialValues trained = trained_values(plan);
  write(arrays_of(plan, trained));
  const auto loaded = load(plan);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_THAT(*loaded, testing::EndsWith("start.safetensors: 12 tensors"));
  expect_values(trained);
}

TEST_F(StartWeightsTest, KeepTheInitialValuesOfNewTensors) {
  const NetworkPlan plan = plan_of(small_layers());
  const InitialValues trained = trained_values(plan);
  Arrays arrays = arrays_of(plan, trained);
  arrays[arrays.size() - 2].shape = {1, 1};  // the head of another task
  arrays[arrays.size() - 2].values = {1};
  arrays.push_back({"layers.9.weight", {1}, {1}});
  write(arrays);
  for (const char* head : {"head", "layers.6"}) {
    start_.fresh = {head};
    const auto loaded = load(plan);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_THAT(*loaded, HasSubstr("10 tensors, 2 new (layers.6.weight, layers.6.bias), 3 of the "
                                   "file not used (layers.6.weight, layers.6.bias, "
                                   "layers.9.weight)"));
    const InitialValues own = initial_values(plan, 2);
    const Block& kept = plan.layers.back().weights;
    EXPECT_TRUE(std::equal(own.weights.begin() + kept.offset,
                           own.weights.begin() + kept.offset + kept.count,
                           values_.weights.begin() + kept.offset));
    EXPECT_EQ(values_.statistics, trained.statistics);
  }
}

TEST_F(StartWeightsTest, ComeFromGpt2) {
  const NetworkPlan plan = gpt_plan(2, 6);
  const InitialValues trained = trained_values(plan);
  for (const std::string prefix : {"", "transformer."}) {
    Arrays arrays = arrays_of(plan, trained);
    std::vector<std::string> modules = {prefix + "wte", prefix + "wpe"};
    for (const char* block : {"h.0.", "h.1."}) {
      for (const char* module :
           {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"}) {
        modules.push_back(prefix + block + module);
      }
    }
    modules.push_back(prefix + "ln_f");
    rename_to(arrays, modules);
    for (FileArray& array : arrays) {
      if (array.shape.size() == 2 && array.name.find(".c_") != std::string::npos) transpose(array);
    }
    FileArray& positions = arrays[1];  // of a longer context
    positions.values.resize(positions.values.size() + 8, 7.0F);
    ++positions.shape[0];
    arrays.push_back({prefix + "h.0.attn.bias", {1}, {0}});  // the causal mask
    write(arrays);
    const auto loaded = load(plan);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_THAT(*loaded, testing::EndsWith(": 28 tensors"));
    expect_values(trained);
  }
}

std::vector<std::string> resnet18_modules() {
  std::vector<std::string> modules = {"conv1", "bn1"};
  for (int stage = 1; stage <= 4; ++stage) {
    for (int block = 0; block < 2; ++block) {
      const std::string at = "layer" + std::to_string(stage) + "." + std::to_string(block) + ".";
      for (const char* module : {"conv1", "bn1", "conv2", "bn2"}) modules.push_back(at + module);
      if (stage == 1 || block == 1) continue;
      modules.push_back(at + "downsample.0");
      modules.push_back(at + "downsample.1");
    }
  }
  modules.push_back("fc");
  return modules;
}

TEST_F(StartWeightsTest, ComeFromTorchvisionsResNet) {
  const NetworkPlan plan = plan_of(resnet18(4, ResNetStem::kSmall));
  const InitialValues trained = trained_values(plan);
  Arrays arrays = arrays_of(plan, trained);
  rename_to(arrays, resnet18_modules());
  arrays.push_back({"bn1.num_batches_tracked", {}, {3}});
  std::ranges::sort(arrays, {}, &FileArray::name);  // the order in the file is another
  write(arrays);
  auto loaded = load(plan);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_THAT(*loaded, testing::EndsWith(": 102 tensors"));
  expect_values(trained);
  // Without its head.
  std::erase_if(arrays, [](const FileArray& array) { return array.name.starts_with("fc"); });
  write(arrays);
  EXPECT_THAT(load(plan).error().message, HasSubstr("lacks the tensor fc.weight"));
  start_.fresh = {"head"};
  loaded = load(plan);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_THAT(*loaded, HasSubstr("100 tensors, 2 new"));
}

struct WrongFile {
  const char* name;
  std::function<void(Arrays&, api::StartConfig&)> spoil;
  const char* message;
};

TEST_F(StartWeightsTest, NameWhatDoesNotFit) {
  const std::vector<WrongFile> table = {
      {"lacks one", [](Arrays& a, auto&) { a.erase(a.begin()); },
       "lacks the tensor layers.0.weight; name it in model.from.new"},
      {"other shape",
       [](Arrays& a, auto&) {
         a[0].shape = {3, 4, 3, 3};
       },
       "has the shape [3,4,3,3], expected [4,3,3,3]"},
      {"unknown new", [](auto&, api::StartConfig& s) { s.fresh = {"layers.60"}; },
       "new names layers.60, which the model lacks; its tensors are layers.0.weight to"},
      {"unknown names",
       [](Arrays& a, auto&) {
         for (auto& one : a) one.name = "x" + one.name;
       },
       "named unlike Fettle's, GPT-2's or ResNet's"},
      {"another kind of model",
       [](auto&, api::StartConfig& s) { s.names = api::TensorNames::kGpt2; },
       "names gpt2 are those of a model.gpt"},
      {"no part of a ResNet",
       [](auto&, api::StartConfig& s) { s.names = api::TensorNames::kResnet; },
       "\"layers.0.weight\" is no part of torchvision's ResNet"},
      {"no file", [](auto&, api::StartConfig& s) { s.file += ".gone"; }, "start.safetensors.gone"},
  };
  const NetworkPlan plan = plan_of(small_layers());
  const std::string file = start_.file;
  for (const WrongFile& row : table) {
    SCOPED_TRACE(row.name);
    start_ = {.file = file, .fresh = {}};
    Arrays arrays = arrays_of(plan, trained_values(plan));
    row.spoil(arrays, start_);
    if (start_.file == file) write(arrays);
    const auto loaded = load(plan);
    ASSERT_FALSE(loaded.ok());
    EXPECT_THAT(loaded.error().message, AllOf(HasSubstr(file), HasSubstr(row.message)));
  }
}

TEST_F(StartWeightsTest, RefuseAResNetOfAnotherDepth) {
  const NetworkPlan plan = plan_of(resnet18(4, ResNetStem::kSmall));
  Arrays arrays = arrays_of(plan, trained_values(plan));
  rename_to(arrays, resnet18_modules());
  std::erase_if(arrays, [](const FileArray& one) { return one.name.starts_with("layer4.1."); });
  write(arrays);
  EXPECT_THAT(load(plan).error().message,
              HasSubstr("the ResNet has 37 layers with weights, the model 41"));
}

TEST_F(StartWeightsTest, HaveNoHeadOfTheirOwnWhereItIsTied) {
  const NetworkPlan plan = gpt_plan(1, 6);
  write(arrays_of(plan, trained_values(plan)));
  start_.fresh = {"head"};
  EXPECT_THAT(load(plan).error().message, HasSubstr("the embedding's matrix"));
}

}  // namespace
}  // namespace fettle::trainer
