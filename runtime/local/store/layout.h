// Layout: the paths of one Study's files on a local disk.
//
//   <root>/<study>.db                            the store (SQLite)
//   <root>/<study>.lock                          held while a runner or its supervisor lives
//   <root>/<study>.lock.runner                   held while a runner lives (study_lock.h)
//   <root>/<study>/<trial>/r<run>/trial.json     the file at FETTLE_TRIAL
//                                /output.log     output of the run, bounded
//                                /outcome.json   how it ended; absent before its end
//                                /outcome.room   room for the outcome meanwhile (outcome_file.h)
//   <root>/<study>/workers/<number>.log          output of a worker between its runs
//   <root>/<study>/workers/workers.json          the workers, while a runner lives (worker_list.h)
//   <root>/<study>/checkpoints/<uid>/<trial>/    checkpoints, by the Study's uid
//
// Pure, but for make_layout (asks for the working directory) and recorded_runs (lists a directory).
// A value type, safe to share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fettle::local {

struct Layout {
  std::string root;   // absolute, without a trailing slash
  std::string study;  // the Study's name

  std::string database() const;
  std::string lock() const;
  std::string study_directory() const;
  std::string trial_directory(const std::string& trial) const;
  std::string run_directory(const std::string& trial, std::int64_t run) const;
  std::string trial_file(const std::string& trial, std::int64_t run) const;
  std::string log_file(const std::string& trial, std::int64_t run) const;
  std::string outcome_file(const std::string& trial, std::int64_t run) const;
  std::string workers_directory() const;
  std::string worker_log(std::int64_t worker) const;
  std::string workers_file() const;
  std::string checkpoint_root() const;  // of all trials: runtime/make_trial_file.h
};

// `root` may be relative to the working directory (".fettle").
Layout make_layout(const std::string& root, const std::string& study);

// The numbers of the runs of `trial` that have a directory, ascending. Empty if none has.
std::vector<std::int64_t> recorded_runs(const Layout& layout, const std::string& trial);

// The names of the Studies that have a database under `root`, sorted.
std::vector<std::string> recorded_studies(const std::string& root);

}  // namespace fettle::local
