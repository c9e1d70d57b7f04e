#include "runtime/local/store/pruning.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/directory.h"

namespace fettle::local {
namespace {

namespace fs = std::filesystem;

struct RunDirectory {
  fs::file_time_type written = fs::file_time_type::min();  // of its newest file
  std::string path;
  std::int64_t bytes = 0;
};

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

RunDirectory measure(const std::string& path) {
  RunDirectory run;
  run.path = path;
  for (const fs::directory_entry& entry : entries_of(path)) {
    std::error_code code;
    if (!entry.is_regular_file(code) || entry.is_symlink(code)) continue;
    const std::uintmax_t size = entry.file_size(code);
    if (!code) run.bytes += static_cast<std::int64_t>(size);
    const fs::file_time_type written = entry.last_write_time(code);
    if (!code) run.written = std::max(run.written, written);
  }
  return run;
}

}  // namespace

Pruned prune_runs(const std::vector<std::string>& study_directories, std::int64_t most,
                  const std::set<std::string>& keep) {
  std::vector<RunDirectory> runs;
  for (const std::string& study : study_directories) {
    for (const fs::directory_entry& trial : entries_of(study)) {
      if (trial.path().filename() == "checkpoints") continue;
      for (const fs::directory_entry& run : entries_of(trial.path().string())) {
        const std::string name = run.path().filename().string();
        if (name[0] == 'r' && is_number(name.substr(1))) {
          runs.push_back(measure(run.path().string()));
        }
      }
    }
  }
  std::int64_t held = 0;
  for (const RunDirectory& run : runs) held += run.bytes;
  std::ranges::sort(runs, [](const RunDirectory& a, const RunDirectory& b) {
    return std::tie(a.written, a.path) < std::tie(b.written, b.path);
  });
  Pruned pruned;
  for (const RunDirectory& run : runs) {
    if (held <= most) break;
    if (keep.count(run.path) > 0) continue;
    std::error_code code;
    fs::remove_all(run.path, code);
    if (code) continue;  // a part of it may be left, so its bytes count on
    held -= run.bytes;
    ++pruned.runs;
    pruned.bytes += run.bytes;
  }
  return pruned;
}

std::vector<std::string> directories_aside(const Layout& layout) {
  std::vector<std::string> found;
  const std::string prefix = layout.study + '-';
  for (const fs::directory_entry& entry : entries_of(layout.root + "/.old")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !is_number(name.substr(prefix.size()))) continue;
    found.push_back(entry.path().string() + '/' + layout.study);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace fettle::local
