#include "base/test_paths.h"

namespace fettle {

std::string source_path(std::string_view relative) {
  return std::string(FETTLE_SOURCE_DIR "/").append(relative);
}

std::string program_path(std::string_view name) {
  return std::string(FETTLE_BINARY_DIR "/bin/").append(name);
}

}  // namespace fettle
