#include "trainer/program/predict.h"

#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"
#include "trainer/data/fingerprint.h"
#include "trainer/data/npy.h"
#include "trainer/data/training_data.h"
#include "trainer/files/int8_model.h"
#include "trainer/predict.h"
#include "trainer/program/console.h"
#include "trainer/program/newest_model.h"

namespace fettle::trainer {
namespace {

template <class T>
Status write_npy(const std::string& path, const std::string& type,
                 const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  std::string file = npy_head(type, shape);
  file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return write_file(path, file);
}

// "out.samples.npy" beside "out.npy".
std::string samples_path(const std::string& logits) {
  constexpr std::string_view kSuffix = ".npy";
  const bool usual = logits.ends_with(kSuffix);
  return logits.substr(0, logits.size() - (usual ? kSuffix.size() : 0)) + ".samples.npy";
}

struct Samples {
  ImageSet inputs;
  Indices indices;
};

Result<Samples> read_validation(const api::DataConfig& config, const NewestModel& newest,
                                DataCache& cache) {
  FETTLE_ASSIGN(TrainingData data, load_training_data(config, cache));
  const std::string different = difference_of_sets(newest.data.train, data.fingerprint.train);
  if (!different.empty()) {
    return invalid(newest.path + " was trained on other data: " + different +
                   "; put the files back, or name samples with --inputs");
  }
  return Samples{std::move(data.images), std::move(data.split.validation)};
}

Result<Samples> read_named(const std::string& path, const NewestModel& newest, DataCache& cache) {
  Samples samples;
  FETTLE_ASSIGN(samples.inputs, read_inputs(newest.model, path, cache));
  samples.indices.resize(static_cast<std::size_t>(samples.inputs.size()));
  std::iota(samples.indices.begin(), samples.indices.end(), std::int64_t{0});
  return samples;
}

Result<Json> write_predictions(const Arguments& arguments) {
  FETTLE_ASSIGN(const NewestModel newest, read_newest_model(arguments, "--predict"));
  const api::TrainerConfig& config = newest.task ? newest.task->task.config : newest.model.config;
  const bool validates = arguments.inputs.empty();
  DataCache cache = DataCache::from_environment();
  FETTLE_ASSIGN(const Samples samples, validates ? read_validation(config.data, newest, cache)
                                                 : read_named(arguments.inputs, newest, cache));
  SavedModel model = newest.model;
  if (arguments.int8) {
    FETTLE_ASSIGN(model, int8_model(newest.model));
  }
  FETTLE_ASSIGN(const Predictions predictions,
                predict(model, config.training, samples.inputs, samples.indices));
  FETTLE_TRY(write_npy(arguments.predict, "<f4", predictions.shape, predictions.logits));
  Json line = Json::object({{"logits", arguments.predict},
                            {"samples", predictions.shape.front()},
                            {"classes", predictions.shape.back()},
                            {"checkpoint", newest.path},
                            {"step", newest.model.position.epoch}});
  if (!validates) return line;
  const std::string path = samples_path(arguments.predict);
  FETTLE_TRY(write_npy(path, "<i8", {std::ssize(samples.indices)}, samples.indices));
  const auto count = static_cast<double>(predictions.sums.samples);
  line.set("indices", path);
  line.set("validation_loss", predictions.sums.loss / count);
  line.set("validation_accuracy", static_cast<double>(predictions.sums.correct) / count);
  return line;
}

}  // namespace

int predict(const Arguments& arguments) {
  const auto line = write_predictions(arguments);
  if (!line.ok()) return fail(line.error());
  print_line(line->dump());
  return 0;
}

}  // namespace fettle::trainer
