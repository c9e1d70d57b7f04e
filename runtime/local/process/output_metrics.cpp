#include "runtime/local/process/output_metrics.h"

namespace fettle::local {
namespace {

std::shared_ptr<const runtime::MetricPattern> pattern_of(const api::MetricsFilter& filter) {
  return filter.regex.empty() ? nullptr : runtime::compile_metrics_filter(filter);
}

}  // namespace

OutputMetrics::OutputMetrics(const runtime::MetricLinesOptions& options)
    : OutputMetrics(options, pattern_of(options.filter)) {}

OutputMetrics::OutputMetrics(const runtime::MetricLinesOptions& options,
                             const std::shared_ptr<const runtime::MetricPattern>& pattern)
    : output_(options, pattern), errors_(options, pattern) {}

void OutputMetrics::feed(Stream stream, std::string_view bytes, std::int64_t now_ms) {
  (stream == Stream::kOutput ? output_ : errors_).feed(bytes, now_ms);
}

void OutputMetrics::finish(std::int64_t now_ms) {
  output_.finish(now_ms);
  errors_.finish(now_ms);
}

bool OutputMetrics::take_urgent() {
  const bool output = output_.take_urgent();
  const bool errors = errors_.take_urgent();
  return output || errors;
}

const runtime::MetricLines& OutputMetrics::chosen() const {
  if (output_.has_result()) return output_;
  if (errors_.has_result()) return errors_;
  return output_.has_report() ? output_ : errors_;
}

std::string OutputMetrics::silence() const {
  if (has_report()) return "";
  return output_.near_miss().joined(errors_.near_miss()).sentence(output_.expected_line());
}

}  // namespace fettle::local
