#include "trainer/files/export.h"

#include <cstdint>
#include <filesystem>
#include <utility>

#include "api/trainer/trainer_json.h"
#include "trainer/files/int8_model.h"
#include "trainer/files/named_weights.h"
#include "trainer/files/onnx.h"
#include "trainer/files/safetensors.h"
#include "trainer/files/torch_module.h"

namespace fettle::trainer {
namespace {

std::string type_of(PixelType pixels) {
  switch (pixels) {
    case PixelType::kByte:
      return "uint8";
    case PixelType::kFloat:
      return "float32";
    case PixelType::kToken:
      return "int64";
  }
  return "";
}

// The shape of one sample, as numpy has it; the batch stands before it.
Json describe_input(const SavedModel& model) {
  const kernels::ImageShape& shape = model.format.input;
  Json sides =
      model.format.tokens
          ? Json::array_of(std::vector<std::int64_t>{shape.height})
          : Json::array_of(std::vector<std::int64_t>{shape.height, shape.width, shape.channels});
  return Json::object({{"shape", std::move(sides)}, {"type", type_of(model.pixels)}});
}

std::string to_safetensors(const SavedModel& model, const ExportOrigin& origin) {
  const std::vector<NamedWeight> weights = named_weights(model.plan);
  std::vector<std::vector<float>> values;
  std::vector<NamedArray> arrays;
  values.reserve(weights.size());  // the arrays refer to them
  for (const NamedWeight& weight : weights) {
    values.push_back(values_of(weight, weight.of_statistics ? model.statistics : model.weights));
    arrays.push_back({weight.name, weight.shape, values.back()});
  }
  // "format" is what the library's own loaders for PyTorch look for.
  return encode_safetensors(arrays,
                            {{"fettle", describe_model(model, origin).dump()}, {"format", "pt"}});
}

// `path`: the module's; the weights lie beside it.
Result<std::vector<ExportedFile>> to_torch(const SavedModel& model, const ExportOrigin& origin,
                                           const std::string& path) {
  const std::filesystem::path module = path;
  if (module.extension() != ".py") {
    return invalid("the file is " + path + ", expected a name that ends with .py");
  }
  const std::filesystem::path weights =
      module.parent_path() / (module.stem().string() + ".safetensors");
  FETTLE_ASSIGN(std::string source, torch_module(model, origin, weights.filename().string()));
  return std::vector<ExportedFile>{{path, std::move(source)},
                                   {weights.string(), to_safetensors(model, origin)}};
}

}  // namespace

std::vector<std::string> export_formats() { return {"onnx", "safetensors", "torch"}; }

Json describe_model(const SavedModel& model, const ExportOrigin& origin) {
  Json text = Json::object({{"version", origin.version}});
  if (!origin.study.empty()) text.set("study", origin.study);
  if (!origin.trial.empty()) text.set("trial", origin.trial);
  text.set("step", model.position.epoch);
  text.set("metrics", model.metrics);
  if (is_int8(model)) text.set("int8", true);
  text.set("input", describe_input(model));
  text.set("classes", model.format.classes);
  if (model.format.tokens) {
    text.set("vocabulary", model.format.vocabulary);
  } else {
    // The pixels are divided first, then normalised.
    text.set("normalize", Json::object({{"mean", model.normalize.mean},
                                        {"std", model.normalize.std},
                                        {"divisor", model.pixels == PixelType::kByte ? 255 : 1}}));
  }
  const Json config = api::write_trainer_config(model.config);
  for (const char* part : {"model", "training"}) {
    if (const Json* found = config.find(part)) text.set(part, *found);
  }
  return text;
}

Result<std::vector<ExportedFile>> export_files(const SavedModel& model, const ExportOrigin& origin,
                                               const std::string& format, const std::string& path) {
  if (format == "torch") return to_torch(model, origin, path);
  if (format == "onnx") {
    FETTLE_ASSIGN(std::string content,
                  onnx_model(model, origin.version, describe_model(model, origin).dump()));
    return std::vector<ExportedFile>{{path, std::move(content)}};
  }
  return std::vector<ExportedFile>{{path, to_safetensors(model, origin)}};
}

}  // namespace fettle::trainer
