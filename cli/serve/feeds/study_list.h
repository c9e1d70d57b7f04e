// StudyList: the rows of the list of Studies. Reads a Study again only when it has changed.
//
// A row is {"name", "uid", "state", "message", "begunMs", "endedMs", "objective": {"metric",
// "maximize"}, "objectives", "best": {"trial", "value", "parameters"} | null, "results", "steps":
// [[results, ms since the start, value] ...], "trials": {...}, "budget", "gpuHours", "cost",
// "costUnit", "activeSeconds"}; of a Study that cannot be read {"name", "error"}. "steps" are the
// results that were the best so far. Used by one thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/source/study_source.h"

namespace fettle::cli {

// Pure.
Json list_row(const RunView& view);

class StudyList {
 public:
  static constexpr std::size_t kMostReads = 20;  // of Studies in one update
  static constexpr std::size_t kMostSteps = 120;

  // `only`: names of Studies; empty = all.
  explicit StudyList(std::vector<std::string> only) : only_(std::move(only)) {}

  // Reads what has changed. Errors: of the listing.
  Status update(StudySource& source);
  // Whether the last update left Studies unread.
  bool is_behind() const { return behind_; }
  struct Row {
    std::string stamp;
    Json data;
  };
  const std::map<std::string, Row>& rows() const { return rows_; }

 private:
  const std::vector<std::string> only_;
  std::map<std::string, Row> rows_;  // by name
  bool behind_ = false;
};

}  // namespace fettle::cli
