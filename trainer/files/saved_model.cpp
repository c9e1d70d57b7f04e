#include "trainer/files/saved_model.h"

#include <bit>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "api/trainer/trainer_json.h"
#include "trainer/checkpoint/identity.h"
#include "trainer/data/fingerprint.h"

namespace fettle::trainer {
namespace {

// Reads all of `text` as a number of that base.
template <class T>
std::optional<T> number_in(std::string_view text, int base) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// From "28×28×1", as to_string() writes it.
std::optional<kernels::ImageShape> read_shape(std::string_view text) {
  constexpr std::string_view kTimes = "×";
  std::int64_t sides[3] = {};
  for (std::int64_t& side : sides) {
    const std::size_t end = text.find(kTimes);
    const auto number = number_in<std::int64_t>(text.substr(0, end), 10);
    if (!number || *number < 1) return std::nullopt;
    side = *number;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + kTimes.size());
  }
  if (!text.empty()) return std::nullopt;
  return kernels::ImageShape{sides[0], sides[1], sides[2]};
}

std::optional<PixelType> read_pixel_type(const std::string& name) {
  if (name == "uint8") return PixelType::kByte;
  if (name == "float32") return PixelType::kFloat;
  if (name == "token") return PixelType::kToken;
  return std::nullopt;
}

// From the bits of two floats, as the fingerprint keeps them.
std::optional<api::NormalizeConfig> read_normalize(const Json& json) {
  if (!json.is_array() || json.as_array().size() != 2) return std::nullopt;
  float values[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& one = json.as_array()[i];
    const auto bits =
        one.is_string() ? number_in<std::uint32_t>(one.as_string(), 16) : std::nullopt;
    if (!bits) return std::nullopt;
    values[i] = std::bit_cast<float>(*bits);
  }
  return api::NormalizeConfig{values[0], values[1]};
}

// Returns false if the fingerprint lacks a property.
bool read_samples(const DataFingerprint& data, SavedModel& to) {
  const auto member = [&data](std::string_view key) {
    const Json* const found = data.train.is_object() ? data.train.find(key) : nullptr;
    return found == nullptr ? Json() : *found;
  };
  const Json shape = member("shape");
  const Json type = member("type");
  const Json classes = member("classes");
  const auto normalize = read_normalize(data.normalize);
  if (!shape.is_string() || !type.is_string() || !classes.is_integer() || !normalize) return false;
  const auto input = read_shape(shape.as_string());
  const auto pixels = read_pixel_type(type.as_string());
  if (!input || !pixels || classes.as_integer() < 1) return false;
  to.pixels = *pixels;
  to.normalize = *normalize;
  to.format = {*input, classes.as_integer(), *pixels == PixelType::kToken, ""};
  return true;
}

// The settings as a configuration, without the seed beside it.
Result<api::TrainerConfig> read_settings(const Json& settings) {
  Json config = Json::object();
  if (settings.is_object()) {
    for (const auto& [key, value] : settings.as_object()) {
      if (key != "seed") config.set(key, value);
    }
  }
  return api::read_trainer_config(config);
}

}  // namespace

Result<SavedModel> read_saved_model(Checkpoint checkpoint, const std::string& path) {
  SavedModel model;
  if (!read_samples(read_fingerprint(checkpoint.data), model)) {
    return invalid(path +
                   " does not describe its samples, as checkpoints of early versions; train one "
                   "more epoch from it with this version");
  }
  auto config = read_settings(checkpoint.settings);
  if (!config.ok()) return Error(config.error()).in(path);
  model.config = std::move(config).value();
  // The layout of a text's network begins with the vocabulary.
  if (model.format.tokens) {
    model.format.vocabulary = checkpoint.layout.substr(0, checkpoint.layout.find("; "));
  }
  auto trained = plan_network(model.config, model.format);
  if (!trained.ok()) return Error(trained.error()).in(path);
  // Without the casts of 16-bit networks and quantised inputs; parameters and statistics lie in the
  // same places, and ranges behind them.
  FETTLE_ASSIGN(model.plan, plan_network(model.config.model, model.format));
  if (layout_of(*trained) != checkpoint.layout ||
      std::ssize(checkpoint.weights) != model.plan.parameters ||
      std::ssize(checkpoint.statistics) != trained->statistics) {
    return invalid(path + " has other layers than its settings describe: " + checkpoint.layout);
  }
  model.position = checkpoint.position;
  model.metrics = std::move(checkpoint.metrics);
  model.weights = std::move(checkpoint.weights);
  model.statistics = std::move(checkpoint.statistics);
  model.statistics.resize(static_cast<std::size_t>(model.plan.statistics));
  model.int8_ranges = std::move(checkpoint.int8_ranges);
  return model;
}

}  // namespace fettle::trainer
