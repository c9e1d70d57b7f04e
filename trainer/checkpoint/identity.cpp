#include "trainer/checkpoint/identity.h"

#include "api/fields/enum_names.h"
#include "api/trainer/trainer_json.h"
#include "trainer/data/bytes.h"
#include "trainer/data/fingerprint.h"
#include "trainer/data/training_data.h"

namespace fettle::trainer {

namespace {

Result<std::string> hash_of(const std::string& field, const std::string& path) {
  auto bytes = map_file(path);
  if (!bytes.ok()) return Error(bytes.error()).in(field);
  return "content " + hexadecimal(content_hash(bytes->view()));
}

// Properties that change a layer's result, but not the sizes of its weights.
std::string what_sizes_do_not_tell(const LayerPlan& layer) {
  if (layer.type == api::LayerType::kGelu) {
    return layer.gelu == kernels::GeluForm::kTanh ? " tanh" : "";
  }
  if (layer.type != api::LayerType::kConv) return "";
  std::string text;
  if (layer.stride != 1) text += " stride " + std::to_string(layer.stride);
  const std::int64_t usual = (layer.kernel_height - 1) / 2;
  if (layer.padding != usual) text += " padding " + std::to_string(layer.padding);
  return text;
}

// The name of the layer that gives the other summand, without quantize layers between.
std::string summand(const NetworkPlan& plan, std::int64_t layer) {
  while (layer != kNetworkInput && plan.layer(layer).type == api::LayerType::kQuantize) {
    layer = plan.layer(layer).source;
  }
  return layer == kNetworkInput ? "" : " and " + plan.layer(layer).name;
}

bool is_left_out(api::LayerType type) {
  return type == api::LayerType::kDropout || type == api::LayerType::kCast ||
         type == api::LayerType::kQuantize;
}

}  // namespace

// Dropout, casts and quantize layers are left out: they have no weights, and other trainings lack
// these layers.
std::string layout_of(const NetworkPlan& plan) {
  std::string text = plan.vocabulary.empty() ? "" : plan.vocabulary + "; ";
  for (const LayerPlan& layer : plan.layers) {
    if (is_left_out(layer.type)) continue;
    text += std::string(api::to_string(layer.type)) + " " + to_string(layer.input) + " to " +
            to_string(layer.output);
    if (layer.type == api::LayerType::kAdd) text += summand(plan, layer.shortcut);
    if (layer.heads > 0) text += " heads " + std::to_string(layer.heads);
    if (layer.kernel_height > 0) text += " kernel " + std::to_string(layer.kernel_height);
    text += what_sizes_do_not_tell(layer);
    if (layer.bias) text += " bias";
    if (layer.relu) text += " relu";
    text += "; ";
  }
  return text;
}

Result<FileHashes> hash_files(const api::TrainerConfig& config) {
  FileHashes hashes;
  if (const auto& start = config.model.from) {
    FETTLE_ASSIGN(hashes.start, hash_of("model.from.file", start->file));
  }
  if (const auto& distill = config.training.distill) {
    FETTLE_ASSIGN(hashes.teacher, hash_of("training.distill.teacher", distill->teacher));
  }
  return hashes;
}

Json settings_of(const api::TrainerConfig& config, std::uint64_t seed, const FileHashes& files) {
  api::TrainerConfig learnt = config;
  learnt.data.test_images.clear();
  learnt.data.test_labels.clear();
  learnt.data.test_text.clear();
  learnt.training.backend = {};
  learnt.training.threads = 1;
  learnt.training.recompute = false;
  learnt.training.max_per_worker.reset();
  learnt.training.shard_optimizer.reset();
  if (learnt.model.from) learnt.model.from->file = files.start;
  if (learnt.training.distill) learnt.training.distill->teacher = files.teacher;
  Json settings = api::write_trainer_config(learnt);
  if (learnt.training.quantize && !api::trains_quantized(learnt.training)) {
    settings.find("training")->find("quantize")->erase("method");  // early checkpoints have none
  }
  settings.set("seed", static_cast<std::int64_t>(seed));
  return settings;
}

std::string difference(const Json& there, const Json& here, const std::string& path) {
  if (there == here) return "";
  if (!there.is_object() || !here.is_object()) {
    return path + " is " + there.dump() + " there and " + here.dump() + " here";
  }
  const auto below = [&path](const std::string& key) {
    return path.empty() ? key : path + "." + key;
  };
  for (const auto& [key, value] : here.as_object()) {
    const Json* other = there.find(key);
    std::string found = difference(other == nullptr ? Json() : *other, value, below(key));
    if (!found.empty()) return found;
  }
  for (const auto& [key, value] : there.as_object()) {
    if (here.find(key) == nullptr) return difference(value, Json(), below(key));
  }
  return "";
}

}  // namespace fettle::trainer
