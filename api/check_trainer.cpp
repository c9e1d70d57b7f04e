// The built-in trainer's configuration: what can be said without the data.
#include "api/check.h"
#include "api/names.h"

namespace fettle::api {
namespace {

bool needs_image(LayerType type) {
  return type == LayerType::kConv || type == LayerType::kMaxPool ||
         type == LayerType::kAveragePool || type == LayerType::kGlobalPool;
}

void check_layers(const ModelConfig& model, const FieldPath& path, FieldErrors& errors) {
  std::string_view flat_since;  // the layer that left a plain list of numbers
  bool trainable = false;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerType type = model.layers[i].type;
    trainable = trainable || type == LayerType::kLinear || type == LayerType::kConv;
    if (needs_image(type) && !flat_since.empty()) {
      errors.add(path.item(i), "found " + std::string(to_string(type)) + " after " +
                                   std::string(flat_since) +
                                   ", which leaves no image; expected it before");
      return;
    }
    if (type == LayerType::kLinear || type == LayerType::kFlatten) flat_since = to_string(type);
  }
  if (!trainable) errors.add(path, "found nothing to train; add a linear or conv layer");
}

void check_data(const DataConfig& data, const FieldPath& path, FieldErrors& errors) {
  if (data.test_images.empty() == data.test_labels.empty()) return;
  const bool labels_missing = data.test_labels.empty();
  errors.add(path.member(labels_missing ? "testLabels" : "testImages"),
             std::string("is missing; expected it beside ") +
                 (labels_missing ? "testImages" : "testLabels") + ", or neither");
}

}  // namespace

void check_trainer(const TrainerConfig& config, const FieldPath& path, FieldErrors& errors) {
  check_data(config.data, path.member("data"), errors);
  const FieldPath model = path.member("model");
  check_layers(config.model, model.member("layers"), errors);
  const FieldPath training = path.member("training");
  if (config.training.global_batch && config.training.batch_per_worker) {
    errors.add(training.member("batchPerWorker"),
               "found beside globalBatch; expected one of the two: globalBatch keeps the batch "
               "whatever the number of workers, batchPerWorker lets it grow");
  }
}

}  // namespace fettle::api
