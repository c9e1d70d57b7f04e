#include "cli/exchange/model_files.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace fettle::cli {
namespace {

namespace fs = std::filesystem;

Error cannot_copy(const std::string& from, const std::string& to, const std::error_code& code) {
  return io_error("cannot copy " + from + " to " + to + ": " + code.message());
}

// Gives the copy its name; a folder of that name is moved aside first, and then removed.
std::error_code put_in_place(const fs::path& copy, const fs::path& to) {
  std::error_code code;
  const fs::path aside = copy.string() + ".old";
  if (fs::exists(fs::symlink_status(to, code))) {
    fs::rename(to, aside, code);
    if (code) return code;
  }
  fs::rename(copy, to, code);
  if (code) return code;
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  return code;
}

}  // namespace

std::string model_path(const std::string& trial, const std::string& format) {
  if (format == "checkpoint") return trial + "-checkpoint";
  if (format != "torch") return trial + "." + format;
  std::string module = trial;  // a name that Python can import
  std::ranges::replace(module, '-', '_');
  return module + ".py";
}

Status copy_checkpoints(const std::string& from, const std::string& to, bool force) {
  std::error_code code;
  if (!fs::is_directory(from, code) || fs::is_empty(from, code)) {
    return not_found(from + " has no files: the trial kept no checkpoint");
  }
  const fs::path whole = fs::path(to.ends_with('/') ? to.substr(0, to.size() - 1) : to);
  if (!force && fs::exists(fs::symlink_status(whole, code))) {
    return invalid(whole.string() + " exists; --force replaces it");
  }
  const fs::path copy = whole.string() + ".tmp-" + std::to_string(::getpid());
  fs::copy(from, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks, code);
  if (!code) code = put_in_place(copy, whole);
  if (!code) return success();
  std::error_code ignored;
  fs::remove_all(copy, ignored);
  return cannot_copy(from, whole, code);
}

}  // namespace fettle::cli
