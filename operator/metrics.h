// BoundedFamily: a family of Prometheus metrics with at most kMaxSeries sets of label values, so
// that names chosen by users cannot fill the memory. prometheus-cpp keeps and serialises the
// metrics, but has no such limit.
// Thread-safe. The registry must outlive it.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace fettle::op {

inline constexpr std::size_t kMaxSeries = 1'000;

// Upper bounds of histograms, in seconds: from a reconcile in memory to a slow API call.
inline const std::vector<double> kBuckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                             0.1,   0.25,   0.5,   1,    2.5,   10};

// Buckets for waits in a cluster: from a pod that starts at once to one that waits for a day.
inline const std::vector<double> kWaitBuckets = {1,   2,   5,    10,   30,   60,    120,
                                                 300, 600, 1800, 3600, 7200, 21600, 86400};

template <class Metric>
class BoundedFamily {
 public:
  // `labels`: the label names. Names of counters end in _total, of times in _seconds. `buckets`:
  // for histograms only.
  BoundedFamily(prometheus::Registry& registry, const std::string& name, const std::string& help,
                std::vector<std::string> labels = {}, std::vector<double> buckets = kBuckets)
      : family_(build().Name(name).Help(help).Register(registry)),
        labels_(std::move(labels)),
        buckets_(std::move(buckets)),
        excess_(make_excess(buckets_)) {}

  // The metric with these label values, in the order of the names. Beyond kMaxSeries: a metric that
  // is not collected. The reference is valid until clear().
  Metric& at(const std::vector<std::string>& values) {
    CHECK(values.size() == labels_.size(), family_.GetName());
    const std::lock_guard lock(mutex_);
    const auto known = series_.find(values);
    if (known != series_.end()) return *known->second;
    if (series_.size() >= kMaxSeries) {  // its value is lost, but callers need no check
      ++left_out_;
      return excess_;
    }
    prometheus::Labels named;
    for (std::size_t i = 0; i < values.size(); ++i) named[labels_[i]] = values[i];
    Metric& added = add(named);
    series_[values] = &added;
    return added;
  }

  // Removes all metrics, before the present series are added.
  void clear() {
    const std::lock_guard lock(mutex_);
    for (const auto& [values, metric] : series_) family_.Remove(metric);
    series_.clear();
    left_out_ = 0;
  }

  // Calls of at() beyond kMaxSeries since clear().
  std::size_t left_out() const {
    const std::lock_guard lock(mutex_);
    return left_out_;
  }

 private:
  static constexpr bool kIsHistogram = std::is_same_v<Metric, prometheus::Histogram>;

  static auto build() {
    if constexpr (kIsHistogram) {
      return prometheus::BuildHistogram();
    } else if constexpr (std::is_same_v<Metric, prometheus::Gauge>) {
      return prometheus::BuildGauge();
    } else {
      return prometheus::BuildCounter();
    }
  }

  static Metric make_excess(const std::vector<double>& buckets) {
    if constexpr (kIsHistogram) {
      return Metric(buckets);
    } else {
      return Metric();
    }
  }

  Metric& add(const prometheus::Labels& named) {
    if constexpr (kIsHistogram) {
      return family_.Add(named, buckets_);
    } else {
      return family_.Add(named);
    }
  }

  prometheus::Family<Metric>& family_;
  const std::vector<std::string> labels_;
  const std::vector<double> buckets_;
  mutable std::mutex mutex_;
  std::map<std::vector<std::string>, Metric*> series_;
  std::size_t left_out_ = 0;
  Metric excess_;
};

using Counters = BoundedFamily<prometheus::Counter>;
using Gauges = BoundedFamily<prometheus::Gauge>;
using Histograms = BoundedFamily<prometheus::Histogram>;

}  // namespace fettle::op
