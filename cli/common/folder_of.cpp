#include "cli/common/folder_of.h"

#include <filesystem>
#include <system_error>

namespace fettle::cli {

std::string folder_of(const std::string& path) {
  if (path == "-") return "";
  std::error_code code;
  return std::filesystem::absolute(path, code).parent_path().string();
}

}  // namespace fettle::cli
