#include "runtime/local/store/layout.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/directory.h"

namespace fettle::local {
namespace {

std::optional<std::int64_t> run_number(const std::string& directory) {
  if (directory.size() < 2 || directory[0] != 'r') return std::nullopt;
  std::int64_t run = 0;
  const char* const end = directory.data() + directory.size();
  const auto [stopped, code] = std::from_chars(directory.data() + 1, end, run);
  if (code != std::errc() || stopped != end) return std::nullopt;
  return run;
}

}  // namespace

std::string Layout::database() const { return root + "/" + study + ".db"; }

std::string Layout::lock() const { return root + "/" + study + ".lock"; }

std::string Layout::study_directory() const { return root + "/" + study; }

std::string Layout::trial_directory(const std::string& trial) const {
  return study_directory() + "/" + trial;
}

std::string Layout::run_directory(const std::string& trial, std::int64_t run) const {
  return trial_directory(trial) + "/r" + std::to_string(run);
}

std::string Layout::trial_file(const std::string& trial, std::int64_t run) const {
  return run_directory(trial, run) + "/trial.json";
}

std::string Layout::log_file(const std::string& trial, std::int64_t run) const {
  return run_directory(trial, run) + "/output.log";
}

std::string Layout::outcome_file(const std::string& trial, std::int64_t run) const {
  return run_directory(trial, run) + "/outcome.json";
}

std::string Layout::workers_directory() const { return study_directory() + "/workers"; }

std::string Layout::worker_log(std::int64_t worker) const {
  return workers_directory() + "/" + std::to_string(worker) + ".log";
}

std::string Layout::workers_file() const { return workers_directory() + "/workers.json"; }

std::string Layout::checkpoint_root() const { return study_directory() + "/checkpoints"; }

Layout make_layout(const std::string& root, const std::string& study) {
  std::error_code code;
  std::string absolute = std::filesystem::absolute(root, code).lexically_normal().string();
  if (code) absolute = root;
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return {absolute, study};
}

std::vector<std::int64_t> recorded_runs(const Layout& layout, const std::string& trial) {
  std::vector<std::int64_t> runs;
  for (const auto& entry : entries_of(layout.trial_directory(trial))) {
    if (const auto run = run_number(entry.path().filename().string())) runs.push_back(*run);
  }
  std::ranges::sort(runs);
  return runs;
}

std::vector<std::string> recorded_studies(const std::string& root) {
  std::vector<std::string> studies;
  for (const auto& entry : entries_of(root)) {
    if (entry.path().extension() == ".db") studies.push_back(entry.path().stem().string());
  }
  std::ranges::sort(studies);
  return studies;
}

}  // namespace fettle::local
