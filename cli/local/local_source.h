// LocalSource: reads studies from this machine's disk: while they run, after their end, and after
// their runner was killed.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/source/study_source.h"
#include "runtime/local/store/layout.h"

namespace fettle::cli {

class LocalSource final : public StudySource {
 public:
  explicit LocalSource(std::string root) : root_(std::move(root)) {}

  std::string place() const override { return "in " + root_; }
  std::string elsewhere() const override;
  Result<std::vector<std::string>> names() override;
  Result<std::string> newest() override;
  // kIo: the store cannot be read.
  Result<SeenStudy> read(const std::string& study, Detail detail) override;
  Status print_log(const std::string& trial, std::optional<std::int64_t> run, bool follow,
                   const LogPrinter& print) override;
  Status print_newest_log(const SeenStudy& seen, const std::string& trial,
                          const LogPrinter& print) override;
  Status scale(const std::string& trial, std::int64_t workers) override;
  Result<std::string> stop(const std::string& study, bool now) override;
  Status remove(const std::string& study) override;

 private:
  Error no_such(const std::string& study);
  Status print_run(const SeenStudy& seen, const std::string& trial,
                   std::optional<std::int64_t> wanted, bool follow, const LogPrinter& print) const;

  const std::string root_;
  std::set<std::string> said_;  // sentences about broken stores, each printed once
};

// Returns the log files of a local study.
LogHint log_files_of(const local::Layout& layout);

}  // namespace fettle::cli
