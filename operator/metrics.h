// Metrics: counters, gauges and histograms, and the text that Prometheus reads (exposition format
// 0.0.4). A family has at most kMaxSeries label sets; what would be one more is left out, so that
// nothing users name can fill the memory. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fettle::op {

inline constexpr std::size_t kMaxSeries = 1'000;

class Metrics {
 public:
  enum class Type { kCounter, kGauge, kHistogram };
  struct Description {
    std::string name;  // [a-z_]+; counters end in _total, times in _seconds
    std::string help;
    Type type = Type::kCounter;
    std::vector<std::string> labels;  // their names
    std::vector<double> buckets;      // of a histogram: upper bounds, ascending, without +Inf
  };
  // Which family: what declare() returned.
  using Id = std::size_t;
  using Labels = std::vector<std::string>;  // values, in the order of the names

  // Families are shown in the order in which they were declared.
  Id declare(Description description);

  void add(Id counter, const Labels& labels, double amount = 1);
  void set(Id gauge, const Labels& labels, double value);
  void observe(Id histogram, const Labels& labels, double value);
  // Takes all values of a family away, to set those that there are now.
  void clear(Id id);

  std::string text() const;

 private:
  struct Series {
    double value = 0;                   // counter, gauge; histogram: the sum
    std::uint64_t count = 0;            // histogram
    std::vector<std::uint64_t> counts;  // histogram: of each bucket alone
  };
  struct Family {
    Description description;
    std::map<Labels, Series> series;
  };

  Series* series_of(Id id, const Labels& labels);
  static void write(const Family& family, std::string& text);

  mutable std::mutex mutex_;
  std::vector<Family> families_;
};

}  // namespace fettle::op
