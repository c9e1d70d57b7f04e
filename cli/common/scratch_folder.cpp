#include "cli/common/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace fettle::cli {

namespace fs = std::filesystem;

Result<ScratchFolder> ScratchFolder::make() {
  std::error_code code;
  const fs::path place = fs::temp_directory_path(code);
  if (code) return io_error("$TMPDIR is no folder: " + code.message());
  std::string path = (place / "fettle-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    return io_error("cannot make a folder in " + place.string() + ": " + std::strerror(errno));
  }
  return ScratchFolder(std::move(path));
}

ScratchFolder::ScratchFolder(std::string path) : path_(std::move(path)) {}
ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace fettle::cli
