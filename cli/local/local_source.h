// LocalSource: reads studies from this machine's disk: while they run, after their end, and after
// their runner was killed. Keeps the store of the study that was read last open, so that reading it
// again costs what has changed. Used by one thread.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/source/study_source.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {
class SqliteStore;
}

namespace fettle::cli {

class LocalSource final : public StudySource {
 public:
  explicit LocalSource(std::string root);
  ~LocalSource() override;

  std::string place() const override { return "in " + root_; }
  std::string elsewhere() const override;
  Result<std::vector<std::string>> names() override;
  Result<std::string> newest() override;
  std::string stamp(const std::string& study) override;
  // kIo: the store cannot be read.
  Result<SeenStudy> read(const std::string& study, Detail detail) override;
  Status print_log(const std::string& trial, std::optional<std::int64_t> run, bool follow,
                   const LogPrinter& print) override;
  Status follow_log(const std::string& trial, const LogPrinter& print,
                    std::stop_token stop) override;
  Status print_newest_log(const SeenStudy& seen, const std::string& trial,
                          const LogPrinter& print) override;
  Status scale(const std::string& trial, std::int64_t workers) override;
  Result<std::string> stop(const std::string& study, bool now) override;
  Status remove(const std::string& study) override;

 private:
  struct Kept;  // an open store

  Error no_such(const std::string& study);
  Result<local::SqliteStore*> store_of(const local::Layout& layout);
  // `follow`: until it is requested to stop; absent: print what there is.
  Status print_run(const SeenStudy& seen, const std::string& trial,
                   std::optional<std::int64_t> wanted, std::optional<std::stop_token> follow,
                   const LogPrinter& print) const;

  const std::string root_;
  std::unique_ptr<Kept> kept_;
  std::set<std::string> said_;  // sentences about broken stores, each printed once
};

// Returns the log files of a local study.
LogHint log_files_of(const local::Layout& layout);

}  // namespace fettle::cli
