#include "trainer/predict.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "trainer/data/batch_writer.h"
#include "trainer/data/npy.h"
#include "trainer/data/training_data.h"
#include "trainer/step/model_runner.h"
#include "trainer/step/training_device.h"

namespace fettle::trainer {
namespace {

constexpr std::int64_t kMostSamples = 256;  // held at once

std::string form_of(PixelType pixels, const kernels::ImageShape& shape) {
  if (pixels == PixelType::kToken) return std::to_string(shape.height) + " token ids";
  return to_string(shape) + (pixels == PixelType::kByte ? " of uint8" : " of float32");
}

Status check_form(const SavedModel& model, const ImageSet& inputs, const std::string& of) {
  if (inputs.shape() == model.format.input && inputs.pixel_type() == model.pixels) {
    return success();
  }
  return invalid(of + " " + form_of(inputs.pixel_type(), inputs.shape()) +
                 "; the network was trained on " + form_of(model.pixels, model.format.input));
}

// The tokens of all samples in a row, and one more: the last one's label.
Result<ImageSet> read_token_inputs(const SavedModel& model, const std::string& path,
                                   DataCache& cache) {
  FETTLE_ASSIGN(const NpyArray array, read_npy(path, "token ids", cache));
  const std::int64_t length = model.format.input.height;
  if (array.type == NpyType::kFloat32 || array.shape.size() != 2 || array.shape[1] != length) {
    return invalid(path + " does not hold token ids of shape [samples, " + std::to_string(length) +
                   "], as the network takes them: whole numbers by numpy.save");
  }
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(array.shape[0] * length + 1));
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::int64_t token = integer_at(array, static_cast<std::int64_t>(i));
    if (token < 0 || token >= model.format.classes) {
      return invalid(path + " has the token " + std::to_string(token) + "; expected 0 to " +
                     std::to_string(model.format.classes - 1));
    }
    tokens[i] = static_cast<std::uint16_t>(token);
  }
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(tokens.data());
  return ImageSet::of_text(Bytes::copy_of({bytes, tokens.size() * sizeof(std::uint16_t)}), length,
                           model.format.classes);
}

}  // namespace

Result<ImageSet> read_inputs(const SavedModel& model, const std::string& path, DataCache& cache) {
  if (model.format.tokens) return read_token_inputs(model, path, cache);
  FETTLE_ASSIGN(ImageSet images, read_npy_images(path, cache));
  FETTLE_TRY(check_form(model, images, path + " has images"));
  return images;
}

Result<Predictions> predict(const SavedModel& model, const api::TrainingConfig& where,
                            const ImageSet& inputs, const Indices& samples) {
  FETTLE_TRY(check_form(model, inputs, "the data have samples"));
  if (inputs.classes() > model.format.classes) {
    return invalid("the data have " + std::to_string(inputs.classes()) +
                   " classes; the network was trained on " + std::to_string(model.format.classes));
  }
  api::TrainingConfig config = where;
  config.precision = api::Precision::kFp32;
  config.recompute = false;
  FETTLE_ASSIGN(const auto device, TrainingDevice::open(config));
  StepShape step;
  step.dealing.limit = std::min(kMostSamples, std::max<std::int64_t>(std::ssize(samples), 1));
  FETTLE_ASSIGN(const auto runner,
                ModelRunner::create(*device, config, model.plan, step, /*seed=*/0, {}, {}));
  Parameters& parameters = runner->network().parameters();
  FETTLE_TRY(parameters.set_weights(model.weights, runner->backend()));
  parameters.statistics.upload(model.statistics);
  runner->weights_changed();
  const BatchWriter writer(model.normalize, {}, kernels::DataType::kFloat32, /*seed=*/0);
  Predictions predictions;
  predictions.shape = {std::ssize(samples)};
  if (model.format.tokens) predictions.shape.push_back(model.format.input.height);
  predictions.shape.push_back(model.format.classes);
  std::vector<float>& logits = predictions.logits;
  runner->predict(inputs, samples, writer, [&logits](std::span<const float> part) {
    logits.insert(logits.end(), part.begin(), part.end());
  });
  predictions.sums = runner->evaluate(inputs, samples, writer);
  return predictions;
}

}  // namespace fettle::trainer
