#include "trainer/files/tensor_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <tuple>

namespace fettle::trainer {
namespace {

using api::TensorNames;

// The tensors of a layer, "layers.3.weight" and "layers.3.bias", which follow each other.
struct Module {
  std::string prefix;  // "layers.3"
  std::vector<const NamedWeight*> tensors;
};

std::string suffix_in(const Module& module, const NamedWeight& weight) {
  return weight.name.substr(module.prefix.size());  // ".weight"
}

std::vector<Module> modules_of(const std::vector<NamedWeight>& weights) {
  std::vector<Module> modules;
  for (const NamedWeight& weight : weights) {
    const std::string prefix =
        weight.name.substr(0, weight.name.find('.', weight.name.find('.') + 1));
    if (modules.empty() || modules.back().prefix != prefix) modules.push_back({prefix, {}});
    modules.back().tensors.push_back(&weight);
  }
  return modules;
}

// ---- GPT-2 -------------------------------------------------------------------------------------

constexpr std::array<const char*, 6> kBlock = {"ln_1", "attn.c_attn", "attn.c_proj",
                                               "ln_2", "mlp.c_fc",    "mlp.c_proj"};

Result<std::vector<FileTensor>> gpt2_names(const SafetensorsFile& file,
                                           const std::vector<Module>& modules) {
  // The embedding, the blocks and the last norm.
  const bool is_gpt = modules.size() > 1 && (modules.size() - 2) % kBlock.size() == 0 &&
                      modules.front().tensors.front()->name.ends_with("token.weight");
  if (!is_gpt) return invalid("names gpt2 are those of a model.gpt, and the model is another one");
  const std::string prefix = file.find("wte.weight") == nullptr ? "transformer." : "";
  std::vector<FileTensor> names = {{prefix + "wte.weight"},
                                   {.name = prefix + "wpe.weight", .may_be_longer = true}};
  for (std::size_t i = 1; i < modules.size(); ++i) {
    const std::size_t block = (i - 1) / kBlock.size();
    const bool last = i + 1 == modules.size();
    const std::string module =
        prefix + (last ? std::string("ln_f")
                       : "h." + std::to_string(block) + "." + kBlock[(i - 1) % kBlock.size()]);
    for (const NamedWeight* weight : modules[i].tensors) {
      names.push_back({module + suffix_in(modules[i], *weight), weight->shape.size() == 2});
    }
  }
  return names;
}

// ---- ResNet ------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 8> kOfBlock = {
    "conv1", "bn1", "conv2", "bn2", "conv3", "bn3", "downsample.0", "downsample.1"};

// Stage, block and place in the block: torchvision's modules in the order in which they run.
using Place = std::tuple<int, int, std::ptrdiff_t>;

std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<Place> place_of(std::string_view module) {
  constexpr std::string_view kStage = "layer";
  constexpr int kBehindStages = 1'000'000;
  if (module == "fc") return Place{kBehindStages, 0, 0};
  int stage = 0;
  int block = 0;
  if (module.starts_with(kStage)) {
    module.remove_prefix(kStage.size());
    const auto number = take_number(module);
    if (!number || !module.starts_with('.')) return std::nullopt;
    module.remove_prefix(1);
    const auto second = take_number(module);
    if (!second || !module.starts_with('.')) return std::nullopt;
    module.remove_prefix(1);
    stage = *number + 1;
    block = *second;
  }
  const auto found = std::ranges::find(kOfBlock, module);
  if (found == kOfBlock.end()) return std::nullopt;
  return Place{stage, block, found - kOfBlock.begin()};
}

Result<std::vector<std::string>> resnet_modules(const SafetensorsFile& file) {
  std::vector<std::pair<Place, std::string>> modules;
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    if (is_spare_tensor(entry.name)) continue;
    const std::string module = entry.name.substr(0, entry.name.rfind('.'));
    const auto place = place_of(module);
    if (!place) return invalid("tensor \"" + entry.name + "\" is no part of torchvision's ResNet");
    modules.emplace_back(*place, module);
  }
  std::ranges::sort(modules);
  const auto repeated = std::ranges::unique(modules);
  modules.erase(repeated.begin(), repeated.end());
  std::vector<std::string> names;
  for (auto& [place, module] : modules) names.push_back(std::move(module));
  return names;
}

Result<std::vector<FileTensor>> resnet_names(const SafetensorsFile& file,
                                             const std::vector<Module>& modules) {
  FETTLE_ASSIGN(std::vector<std::string> theirs, resnet_modules(file));
  if (theirs.size() + 1 == modules.size()) theirs.push_back("fc");  // a network without its head
  if (theirs.size() != modules.size()) {
    return invalid("the ResNet has " + std::to_string(theirs.size()) +
                   " layers with weights, the model " + std::to_string(modules.size()));
  }
  std::vector<FileTensor> names;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    for (const NamedWeight* weight : modules[i].tensors) {
      names.push_back({theirs[i] + suffix_in(modules[i], *weight)});
    }
  }
  return names;
}

// ---- All ---------------------------------------------------------------------------------------

// kAuto: none of them.
TensorNames find_names(const SafetensorsFile& file) {
  const auto has = [&file](const char* name) { return file.find(name) != nullptr; };
  if (has("wte.weight") || has("transformer.wte.weight")) return TensorNames::kGpt2;
  if (has("conv1.weight") && has("bn1.weight")) return TensorNames::kResnet;
  const bool ours = std::ranges::any_of(file.entries(), [](const SafetensorsFile::Entry& entry) {
    return entry.name.starts_with("layers.");
  });
  return ours ? TensorNames::kFettle : TensorNames::kAuto;
}

}  // namespace

Result<std::vector<FileTensor>> names_in_file(const SafetensorsFile& file, TensorNames names,
                                              const std::vector<NamedWeight>& weights) {
  if (names == TensorNames::kAuto) names = find_names(file);
  std::vector<FileTensor> same;
  switch (names) {
    case TensorNames::kAuto:
      return invalid("its tensors are named unlike Fettle's, GPT-2's or ResNet's");
    case TensorNames::kGpt2:
      return gpt2_names(file, modules_of(weights));
    case TensorNames::kResnet:
      return resnet_names(file, modules_of(weights));
    case TensorNames::kFettle:
      for (const NamedWeight& weight : weights) same.push_back({weight.name});
      return same;
  }
  CHECK(false, "every way of naming has its case");
}

bool is_spare_tensor(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".num_batches_tracked") || name == "lm_head.weight";
}

}  // namespace fettle::trainer
