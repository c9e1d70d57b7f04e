#include "runtime/local/pruning.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <tuple>

namespace fettle::local {
namespace {

namespace fs = std::filesystem;

struct RunDirectory {
  fs::file_time_type written = fs::file_time_type::min();  // of its newest file
  std::string path;
  std::int64_t bytes = 0;
};

// Calls `visit` for what is in `directory`; nothing where it cannot be read.
void for_each_in(const std::string& directory,
                 const std::function<void(const fs::directory_entry&)>& visit) {
  std::error_code code;
  fs::directory_iterator entry(directory, code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code)) visit(*entry);
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

RunDirectory measure(const std::string& path) {
  RunDirectory run;
  run.path = path;
  for_each_in(path, [&run](const fs::directory_entry& entry) {
    std::error_code code;
    if (!entry.is_regular_file(code) || entry.is_symlink(code)) return;
    const std::uintmax_t size = entry.file_size(code);
    if (!code) run.bytes += static_cast<std::int64_t>(size);
    const fs::file_time_type written = entry.last_write_time(code);
    if (!code) run.written = std::max(run.written, written);
  });
  return run;
}

}  // namespace

Pruned prune_runs(const std::vector<std::string>& study_directories, std::int64_t most,
                  const std::set<std::string>& keep) {
  std::vector<RunDirectory> runs;
  for (const std::string& study : study_directories) {
    for_each_in(study, [&runs](const fs::directory_entry& trial) {
      if (trial.path().filename() == "checkpoints") return;
      for_each_in(trial.path().string(), [&runs](const fs::directory_entry& run) {
        const std::string name = run.path().filename().string();
        if (name[0] == 'r' && is_number(name.substr(1))) {
          runs.push_back(measure(run.path().string()));
        }
      });
    });
  }
  std::int64_t held = 0;
  for (const RunDirectory& run : runs) held += run.bytes;
  std::sort(runs.begin(), runs.end(), [](const RunDirectory& a, const RunDirectory& b) {
    return std::tie(a.written, a.path) < std::tie(b.written, b.path);
  });
  Pruned pruned;
  for (const RunDirectory& run : runs) {
    if (held <= most) break;
    if (keep.count(run.path) > 0) continue;
    std::error_code code;
    fs::remove_all(run.path, code);
    if (code) continue;
    held -= run.bytes;
    ++pruned.runs;
    pruned.bytes += run.bytes;
  }
  return pruned;
}

std::vector<std::string> directories_aside(const Layout& layout) {
  std::vector<std::string> found;
  const std::string prefix = layout.study + '-';
  for_each_in(layout.root + "/.old", [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (name.compare(0, prefix.size(), prefix) != 0 || !is_number(name.substr(prefix.size()))) {
      return;
    }
    found.push_back(entry.path().string() + '/' + layout.study);
  });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace fettle::local
