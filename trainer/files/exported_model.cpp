#include "trainer/files/exported_model.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "api/trainer/trainer_json.h"
#include "trainer/files/named_weights.h"
#include "trainer/files/safetensors.h"

namespace fettle::trainer {
namespace {

constexpr std::int64_t kLargestSide = 1 << 20;

// The member of an object, or null.
Json member(const Json& object, std::string_view key) {
  const Json* const found = object.is_object() ? object.find(key) : nullptr;
  return found == nullptr ? Json() : *found;
}

// [height, width, channels], or [length] of a text.
std::optional<std::vector<std::int64_t>> read_sides(const Json& shape) {
  if (!shape.is_array()) return std::nullopt;
  std::vector<std::int64_t> sides;
  for (const Json& side : shape.as_array()) {
    if (!side.is_integer() || side.as_integer() < 1 || side.as_integer() > kLargestSide) {
      return std::nullopt;
    }
    sides.push_back(side.as_integer());
  }
  if (sides.size() != 1 && sides.size() != 3) return std::nullopt;
  return sides;
}

// Returns false if a property of the samples is missing or makes no sense.
bool read_samples(const Json& described, SavedModel& to) {
  const Json input = member(described, "input");
  const Json classes = member(described, "classes");
  const auto sides = read_sides(member(input, "shape"));
  if (!sides || !classes.is_integer() || classes.as_integer() < 1) return false;
  to.format.classes = classes.as_integer();
  to.format.tokens = sides->size() == 1;
  if (to.format.tokens) {
    const Json vocabulary = member(described, "vocabulary");
    if (!vocabulary.is_string()) return false;
    to.format.input = {sides->front(), 1, 1};
    to.format.vocabulary = vocabulary.as_string();
    to.pixels = PixelType::kToken;
    return true;
  }
  const Json normalize = member(described, "normalize");
  const Json mean = member(normalize, "mean");
  const Json deviation = member(normalize, "std");
  if (!mean.is_number() || !deviation.is_number()) return false;
  to.format.input = {(*sides)[0], (*sides)[1], (*sides)[2]};
  to.normalize = {mean.as_double(), deviation.as_double()};
  to.pixels = member(input, "type") == Json("uint8") ? PixelType::kByte : PixelType::kFloat;
  return true;
}

// The configuration that the file describes; its data are of that form, without names of files.
Result<api::TrainerConfig> read_config(const Json& described, const SampleFormat& format) {
  Json data =
      format.tokens
          ? Json::object(
                {{"format", "tokens"}, {"trainText", "unknown"}, {"context", format.input.height}})
          : Json::object({{"trainImages", "unknown"}, {"trainLabels", "unknown"}});
  return api::read_trainer_config(Json::object({{"data", std::move(data)},
                                                {"model", member(described, "model")},
                                                {"training", member(described, "training")}}));
}

Status read_tensors(const SafetensorsFile& file, SavedModel& model) {
  model.weights.resize(static_cast<std::size_t>(model.plan.parameters));
  model.statistics.resize(static_cast<std::size_t>(model.plan.statistics));
  std::vector<std::string> names;
  for (const NamedWeight& weight : named_weights(model.plan)) {
    FETTLE_ASSIGN(const std::vector<float> values, file.values(weight.name, weight.shape));
    place_values(weight, values, weight.of_statistics ? model.statistics : model.weights);
    names.push_back(weight.name);
  }
  return file.expect_only(names);
}

}  // namespace

Result<SavedModel> read_exported_model(const Bytes& file, const std::string& path) {
  FETTLE_ASSIGN(const SafetensorsFile tensors, SafetensorsFile::parse(file, path));
  const auto found = tensors.metadata().find("fettle");
  if (found == tensors.metadata().end()) {
    return invalid(path +
                   " does not describe its network; expected a file of fettle export-model "
                   "--format safetensors");
  }
  constexpr int kDepth = 8;
  const Result<Json> described = parse_json(found->second, {.max_depth = kDepth});
  SavedModel model;
  if (!described.ok() || !read_samples(*described, model)) {
    return invalid(path + " does not describe its network as fettle export-model does");
  }
  auto config = read_config(*described, model.format);
  if (!config.ok()) return Error(config.error()).in(path);
  model.config = std::move(config).value();
  auto plan = plan_network(model.config.model, model.format);
  if (!plan.ok()) return Error(plan.error()).in(path);
  model.plan = std::move(plan).value();
  const Json step = member(*described, "step");
  if (step.is_integer()) model.position.epoch = step.as_integer();
  model.metrics = member(*described, "metrics");
  FETTLE_TRY(read_tensors(tensors, model));
  return model;
}

}  // namespace fettle::trainer
