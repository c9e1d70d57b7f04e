// Checks of the built-in trainer's configuration that need no data.
#include "api/trainer/check_trainer.h"

#include <algorithm>

#include "api/fields/enum_names.h"

namespace fettle::api {
namespace {

bool needs_image(LayerType type) {
  return type == LayerType::kConv || type == LayerType::kMaxPool ||
         type == LayerType::kAveragePool || type == LayerType::kGlobalPool;
}

bool trains(LayerType type) {
  return type == LayerType::kLinear || type == LayerType::kConv || type == LayerType::kEmbedding;
}

bool leaves_no_image(LayerType type) {
  return type == LayerType::kLinear || type == LayerType::kFlatten || type == LayerType::kEmbedding;
}

void check_layers(const ModelConfig& model, const FieldPath& path, FieldErrors& errors) {
  std::string_view flat_since;  // the layer that turned the image into a list of numbers
  bool trainable = false;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerType type = model.layers[i].type;
    trainable = trainable || trains(type);
    if (needs_image(type) && !flat_since.empty()) {
      errors.add(path.item(i), "found " + std::string(to_string(type)) + " after " +
                                   std::string(flat_since) +
                                   ", which leaves no image; expected it before");
      return;
    }
    if (leaves_no_image(type)) flat_since = to_string(type);
  }
  if (!trainable) errors.add(path, "found nothing to train; add a linear or conv layer");
}

// A residual block whose end has not come yet.
struct OpenBlock {
  std::size_t start = 0;
  bool shortcut = false;
};

// Returns the error of shortcut or add at entry `i`, within these blocks; "" if there is no error.
std::string misplaced(LayerType type, std::size_t i, const std::vector<OpenBlock>& open) {
  const std::string found = "found " + std::string(to_string(type));
  if (open.empty()) return found + " outside of a block; expected residual before it";
  if (i == open.back().start + 1) {
    return found + " right after residual; expected the block's layers between";
  }
  if (type == LayerType::kShortcut && open.back().shortcut) {
    return found + " a second time in one block; expected add";
  }
  return "";
}

// Checks residual, layers, perhaps shortcut and layers, add: they nest like brackets.
void check_blocks(const ModelConfig& model, const FieldPath& path, FieldErrors& errors) {
  std::vector<OpenBlock> open;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerType type = model.layers[i].type;
    if (type == LayerType::kResidual) open.push_back({i});
    if (type != LayerType::kShortcut && type != LayerType::kAdd) continue;
    const std::string wrong = misplaced(type, i, open);
    if (!wrong.empty()) {
      errors.add(path.item(i), wrong);
      return;
    }
    // A block is open: misplaced() refuses both layers outside of a block.
    if (type == LayerType::kAdd) {
      open.pop_back();
    } else {
      open.back().shortcut = true;
    }
  }
  if (open.empty()) return;
  errors.add(path.item(open.back().start),
             "found a residual block that does not end; expected {type: add} after its layers");
}

void check_gpt(const GptConfig& gpt, const FieldPath& path, FieldErrors& errors) {
  if (gpt.width % gpt.heads == 0) return;
  errors.add(path.member("heads"), "found " + std::to_string(gpt.heads) +
                                       ", which does not divide the width of " +
                                       std::to_string(gpt.width) + "; expected a divisor of it");
}

// Text needs an embedding as its first layer, and other data have no use for one.
void check_embedding(const TrainerConfig& config, const FieldPath& path, FieldErrors& errors) {
  const bool text = is_text(config.data);
  const std::vector<LayerConfig>& layers = config.model.layers;
  if (config.model.gpt && !text) {
    errors.add(path.member("gpt"), "found beside images; expected data.format text or tokens");
  }
  const FieldPath list = path.member("layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool embeds = layers[i].type == LayerType::kEmbedding;
    if (text && i == 0 && !embeds) {
      errors.add(list.item(i), "found " + std::string(to_string(layers[i].type)) +
                                   " for text; expected an embedding as the first layer");
    }
    if (embeds && !text) {
      errors.add(list.item(i), "found embedding for images; expected data.format text or tokens");
    }
    if (embeds && text && i > 0) {
      errors.add(list.item(i), "found a second embedding; expected one only, as the first layer");
    }
  }
}

void check_freeze(const ModelConfig& model, const FieldPath& path, FieldErrors& errors) {
  const auto entries = static_cast<std::int64_t>(model.layers.size());
  const std::int64_t most = model.gpt ? model.gpt->layers : entries - 1;
  const std::int64_t frozen = model.freeze.value_or(0);
  if (frozen <= most) return;
  errors.add(path, "found " + std::to_string(frozen) + " of " +
                       (model.gpt ? std::to_string(most) + " blocks"
                                  : std::to_string(entries) + " layers, which leaves nothing to "
                                                              "train") +
                       "; expected at most " + std::to_string(most));
}

void check_model(const TrainerConfig& config, const FieldPath& path, FieldErrors& errors) {
  const ModelConfig& model = config.model;
  if (model.gpt && !model.layers.empty()) {
    errors.add(path.member("gpt"), "found beside layers; expected one of the two");
    return;
  }
  if (!model.gpt && model.layers.empty()) {
    errors.add(path.member("layers"), "is missing; expected the layers, or gpt for text");
    return;
  }
  if (model.gpt) {
    check_gpt(*model.gpt, path.member("gpt"), errors);
  } else {
    check_layers(model, path.member("layers"), errors);
    check_blocks(model, path.member("layers"), errors);
  }
  check_freeze(model, path.member("freeze"), errors);
  check_embedding(config, path, errors);
}

void check_data(const DataConfig& data, const FieldPath& path, FieldErrors& errors) {
  if (data.test_images.empty() == data.test_labels.empty()) return;
  const bool labels_missing = data.test_labels.empty();
  errors.add(path.member(labels_missing ? "testLabels" : "testImages"),
             std::string("is missing; expected it beside ") +
                 (labels_missing ? "testImages" : "testLabels") + ", or neither");
}

// Batch normalisation takes its statistics over the samples that a worker holds at once, and so do
// the ranges of quantised inputs. These must be the whole batch, or the requested group, so that
// maxPerWorker changes speed only. So a worker must be able to hold them, even all of globalBatch,
// which may fall to one worker.
void check_held_samples(const TrainerConfig& config, const FieldPath& path, FieldErrors& errors) {
  const TrainingConfig& training = config.training;
  if (!mixes_samples(config) || !training.max_per_worker) return;
  const std::int64_t batch =
      training.batch_per_worker.value_or(training.global_batch.value_or(kDefaultGlobalBatch));
  const std::int64_t group = std::min(training.norm_group.value_or(batch), batch);
  if (*training.max_per_worker >= group) return;
  const std::string held = std::to_string(*training.max_per_worker);
  if (training.norm_group) {
    errors.add(path, "found " + held + " with a normGroup of " + std::to_string(group) +
                         ", which a worker holds at once; expected at least " +
                         std::to_string(group) + ", or a smaller normGroup");
    return;
  }
  const bool norm = has_batch_norm(config.model);
  errors.add(path,
             "found " + held + (norm ? " with a batchNorm layer" : " with quantize.method qat") +
                 " and a batch of " + std::to_string(batch) + ", so its " +
                 (norm ? "statistics" : "ranges") + " would be those of " + held +
                 " samples, not of the batch; leave maxPerWorker out, set normGroup to at "
                 "most " +
                 held + ", or use a batch of at most that" + (norm ? " or no batchNorm" : ""));
}

void check_prune(const PruneConfig& prune, const FieldPath& path, FieldErrors& errors) {
  if (prune.begin <= prune.end) return;
  errors.add(path.member("end"), "found less than begin; expected at least begin");
}

void check_quantize(const TrainingConfig& training, const FieldPath& path, FieldErrors& errors) {
  if (!trains_quantized(training)) return;
  const FieldPath quantize = path.member("quantize");
  if (training.precision == Precision::kFp16) {
    errors.add(quantize.member("method"),
               "found qat with precision fp16, which training on 8-bit grids does not support; "
               "expected bf16, tf32 or fp32");
  }
  const auto& from = training.quantize->from_epoch;
  if (from && training.epochs && *from >= *training.epochs) {
    errors.add(quantize.member("fromEpoch"),
               "found " + std::to_string(*from) + " with " + std::to_string(*training.epochs) +
                   " epochs, so no epoch would compute with rounded numbers; expected less");
  }
}

}  // namespace

bool has_batch_norm(const ModelConfig& model) {
  return std::ranges::any_of(
      model.layers, [](const LayerConfig& layer) { return layer.type == LayerType::kBatchNorm; });
}

bool trains_quantized(const TrainingConfig& training) {
  return training.quantize && training.quantize->method == QuantizeMethod::kQat;
}

std::int64_t quantized_from(const TrainingConfig& training) {
  const std::int64_t epochs = training.epochs.value_or(1);
  return training.quantize->from_epoch.value_or(epochs - (epochs + 3) / 4);
}

bool mixes_samples(const TrainerConfig& config) {
  return has_batch_norm(config.model) || trains_quantized(config.training);
}

void check_trainer(const TrainerConfig& config, const FieldPath& path, FieldErrors& errors) {
  check_data(config.data, path.member("data"), errors);
  check_model(config, path.member("model"), errors);
  const FieldPath training = path.member("training");
  if (config.training.global_batch && config.training.batch_per_worker) {
    errors.add(training.member("batchPerWorker"),
               "found beside globalBatch; expected one of the two: globalBatch keeps the batch "
               "whatever the number of workers, batchPerWorker lets it grow");
  }
  check_held_samples(config, training.member("maxPerWorker"), errors);
  check_quantize(config.training, training, errors);
  if (config.training.prune) {
    check_prune(*config.training.prune, training.member("prune"), errors);
  }
}

}  // namespace fettle::api
