#include "trainer/files/teacher.h"

#include <utility>

#include "trainer/data/bytes.h"
#include "trainer/files/exported_model.h"

namespace fettle::trainer {
namespace {

constexpr const char* kField = "training.distill.teacher";

std::string number(double value) { return Json(value).dump(); }

// "60 tokens", "28×28×1".
std::string samples_of(const SampleFormat& format) {
  return format.tokens ? std::to_string(format.input.height) + " tokens" : to_string(format.input);
}

std::string text_of(const api::NormalizeConfig& normalize) {
  return "{mean: " + number(normalize.mean) + ", std: " + number(normalize.std) + "}";
}

// As the pixels are normalised: in fp32.
bool same(const api::NormalizeConfig& a, const api::NormalizeConfig& b) {
  return static_cast<float>(a.mean) == static_cast<float>(b.mean) &&
         static_cast<float>(a.std) == static_cast<float>(b.std);
}

// The reason why the teacher cannot take the student's samples; "": it can.
std::string difference_of(const SavedModel& teacher, const TrainingData& data) {
  const SampleFormat here = data.format();
  const SampleFormat& there = teacher.format;
  if (there.tokens != here.tokens || there.input != here.input) {
    return "takes samples of " + samples_of(there) + "; the data have " + samples_of(here);
  }
  if (there.vocabulary != here.vocabulary) {
    return "was trained with another vocabulary (" + there.vocabulary + "; the data have " +
           here.vocabulary + ")";
  }
  if (there.classes != here.classes) {
    return "has " + std::to_string(there.classes) + " classes; the data have " +
           std::to_string(here.classes);
  }
  if (!here.tokens && !same(teacher.normalize, data.normalize)) {
    return "normalises its pixels otherwise than the data are; set data.normalize to " +
           text_of(teacher.normalize);
  }
  return "";
}

}  // namespace

Result<std::optional<Teacher>> read_teacher(const api::TrainerConfig& config,
                                            const TrainingData& data) {
  if (!config.training.distill) return std::optional<Teacher>();
  const std::string& path = config.training.distill->teacher;
  auto file = map_file(path);
  if (!file.ok()) return Error(file.error()).in(kField);
  auto model = read_exported_model(*file, path);
  if (!model.ok()) return Error(model.error()).in(kField);
  if (const std::string different = difference_of(*model, data); !different.empty()) {
    return invalid(std::string(kField) + ": " + path + " " + different);
  }
  // The student's training decides about types only.
  api::TrainerConfig as_student = config;
  as_student.model = model->config.model;
  as_student.training.quantize.reset();
  Teacher teacher;
  FETTLE_ASSIGN(teacher.plan, plan_network(as_student, model->format));
  teacher.weights = std::move(model->weights);
  teacher.statistics = std::move(model->statistics);
  return std::optional(std::move(teacher));
}

}  // namespace fettle::trainer
