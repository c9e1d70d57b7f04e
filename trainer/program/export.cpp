#include "trainer/program/export.h"

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "trainer/files/export.h"
#include "trainer/files/int8_model.h"
#include "trainer/program/console.h"
#include "trainer/program/newest_model.h"

namespace fettle::trainer {
namespace {

Result<ExportOrigin> origin_of(const Arguments& arguments, const NewestModel& newest) {
  ExportOrigin origin{.version = FETTLE_VERSION, .study = "", .trial = ""};
  if (newest.task && newest.task->trial) {
    origin.study = newest.task->trial->study;
    origin.trial = newest.task->trial->trial;
  }
  if (arguments.origin.empty()) return origin;
  const std::size_t end = arguments.origin.find('/');
  if (end == std::string::npos) {
    return invalid("--origin is \"" + arguments.origin + "\", expected STUDY/TRIAL");
  }
  origin.study = arguments.origin.substr(0, end);
  origin.trial = arguments.origin.substr(end + 1);
  return origin;
}

// Before the first is written, so that all are written or none.
Status refuse_to_replace(const std::vector<ExportedFile>& files) {
  for (const ExportedFile& file : files) {
    std::error_code ignored;
    if (std::filesystem::exists(file.path, ignored)) {
      return invalid(file.path + " exists; --force replaces it");
    }
  }
  return success();
}

// The network that is asked for.
Result<SavedModel> asked_model(const Arguments& arguments, const SavedModel& newest) {
  if (!arguments.int8) return newest;
  if (arguments.format == "onnx") return int8_model(newest);
  return invalid("--int8 is for ONNX, which has integers; found --format " + arguments.format);
}

Result<Json> write_model(const Arguments& arguments) {
  FETTLE_ASSIGN(const NewestModel newest, read_newest_model(arguments, "--export"));
  FETTLE_ASSIGN(const ExportOrigin origin, origin_of(arguments, newest));
  FETTLE_ASSIGN(const SavedModel model, asked_model(arguments, newest.model));
  FETTLE_ASSIGN(const std::vector<ExportedFile> files,
                export_files(model, origin, arguments.format, arguments.export_to));
  if (!arguments.force) FETTLE_TRY(refuse_to_replace(files));
  Json paths = Json::array();
  for (const ExportedFile& file : files) {
    FETTLE_TRY(write_file(file.path, file.content));
    paths.push_back(file.path);
  }
  return Json::object({{"files", std::move(paths)},
                       {"checkpoint", newest.path},
                       {"step", newest.model.position.epoch},
                       {"metrics", newest.model.metrics}});
}

}  // namespace

int export_model(const Arguments& arguments) {
  const auto line = write_model(arguments);
  if (!line.ok()) return fail(line.error());
  print_line(line->dump());
  return 0;
}

}  // namespace fettle::trainer
