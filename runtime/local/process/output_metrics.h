// OutputMetrics: the report of a run, read from its standard output and its standard error.
//
// Progress bars and Python's logging write to standard error, so it is read as well; on a cluster a
// container's log holds both. The two are never mixed: they come through two pipes, in no common
// order, and steps are counted by order. The report comes from standard output once that has held a
// metric that the Study asks for, else from standard error once that has; before that, from
// standard output if it has a report at all. Not synchronised; no IO.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/metric_lines.h"

namespace fettle::local {

class OutputMetrics {
 public:
  enum class Stream { kOutput, kErrors };

  explicit OutputMetrics(const runtime::MetricLinesOptions& options);

  void feed(Stream stream, std::string_view bytes, std::int64_t now_ms);
  // See MetricLines::finish: not for a program that was killed.
  void finish(std::int64_t now_ms);

  bool has_report() const { return chosen().has_report(); }
  const api::Report& report() const { return chosen().report(); }
  // Grows when the report may have changed.
  std::int64_t lines() const { return output_.lines() + errors_.lines(); }
  bool take_urgent();
  // Why there is no report; "" if there is one.
  std::string silence() const;
  // At the end: the parts of the output that did not count (MetricLines::remarks); "" = none.
  std::string remarks() const { return chosen().remarks(); }

 private:
  OutputMetrics(const runtime::MetricLinesOptions& options,
                const std::shared_ptr<const runtime::MetricPattern>& pattern);
  const runtime::MetricLines& chosen() const;

  runtime::MetricLines output_;
  runtime::MetricLines errors_;
};

}  // namespace fettle::local
