// fettle init: writes a study to begin from into the working directory, ready to run.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/check.h"
#include "base/file.h"
#include "cli/common/commands.h"
#include "cli/common/embedded_file.h"
#include "cli/common/exit_code.h"

namespace fettle::cli {
namespace {

struct Written {
  std::string_view kind;
  std::string_view part;  // a name in init_files()
  std::string_view file;  // its name in the working directory
};

constexpr Written kWritten[] = {
    {"python", "train.py", "train.py"}, {"python", "study.python.yaml", "study.yaml"},
    {"shell", "train.sh", "train.sh"},  {"shell", "study.shell.yaml", "study.yaml"},
    {"trainer", "LICENSE", "text.txt"}, {"trainer", "study.trainer.yaml", "study.yaml"},
};

std::string_view bytes_of(std::string_view part) {
  const auto found = std::ranges::find(init_files(), part, &EmbeddedFile::name);
  CHECK(found != init_files().end(), "init.cmake embeds every file of the table");
  return found->bytes;
}

}  // namespace

std::vector<std::string> init_kinds() {
  std::vector<std::string> kinds;
  for (const Written& one : kWritten) {
    if (kinds.empty() || kinds.back() != one.kind) kinds.emplace_back(one.kind);
  }
  return kinds;
}

// Writes all files or, if one exists, none: it may be a user's own.
Result<int> init_command(const InitOptions& options) {
  for (const Written& one : kWritten) {
    if (one.kind != options.kind || !std::filesystem::exists(one.file)) continue;
    return invalid(std::string(one.file) + " exists and is left as it is; run fettle init in " +
                   "another directory, or move the file away");
  }
  for (const Written& one : kWritten) {
    if (one.kind != options.kind) continue;
    FETTLE_TRY(write_file(std::string(one.file), bytes_of(one.part)));
    std::cout << "wrote " << one.file << '\n';
  }
  std::cout << "To begin: fettle run study.yaml\n";
  return kExitSucceeded;
}

}  // namespace fettle::cli
