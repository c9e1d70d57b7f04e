#include "operator/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace fettle::op {

namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

std::string escape(const std::string& text, bool quotes) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || (quotes && c == '"')) escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// {a="x",b="y"}; `le` is a histogram's bucket, "" = none.
std::string label_text(const std::vector<std::string>& names, const Metrics::Labels& values,
                       const std::string& le) {
  std::string text;
  const auto add = [&text](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : ",") + name + "=\"" + escape(value, true) + "\"";
  };
  for (std::size_t i = 0; i < names.size(); ++i) add(names[i], values[i]);
  if (!le.empty()) add("le", le);
  return text.empty() ? "" : "{" + text + "}";
}

const char* type_name(Metrics::Type type) {
  switch (type) {
    case Metrics::Type::kCounter:
      return "counter";
    case Metrics::Type::kGauge:
      return "gauge";
    case Metrics::Type::kHistogram:
      return "histogram";
  }
  return "untyped";
}

}  // namespace

Metrics::Id Metrics::declare(Description description) {
  const std::lock_guard lock(mutex_);
  families_.push_back({std::move(description), {}});
  return families_.size() - 1;
}

// Null when there are too many.
Metrics::Series* Metrics::series_of(Id id, const Labels& labels) {
  Family& family = families_.at(id);
  CHECK(labels.size() == family.description.labels.size(), family.description.name);
  const auto found = family.series.find(labels);
  if (found != family.series.end()) return &found->second;
  if (family.series.size() >= kMaxSeries) return nullptr;
  Series& series = family.series[labels];
  series.counts.resize(family.description.buckets.size());
  return &series;
}

void Metrics::add(Id counter, const Labels& labels, double amount) {
  const std::lock_guard lock(mutex_);
  if (Series* series = series_of(counter, labels)) series->value += amount;
}

void Metrics::set(Id gauge, const Labels& labels, double value) {
  const std::lock_guard lock(mutex_);
  if (Series* series = series_of(gauge, labels)) series->value = value;
}

void Metrics::observe(Id histogram, const Labels& labels, double value) {
  const std::lock_guard lock(mutex_);
  Series* series = series_of(histogram, labels);
  if (series == nullptr) return;
  const std::vector<double>& buckets = families_[histogram].description.buckets;
  const auto bucket = std::lower_bound(buckets.begin(), buckets.end(), value);
  if (bucket != buckets.end()) ++series->counts[static_cast<std::size_t>(bucket - buckets.begin())];
  series->value += value;
  ++series->count;
}

void Metrics::clear(Id id) {
  const std::lock_guard lock(mutex_);
  families_.at(id).series.clear();
}

void Metrics::write(const Family& family, std::string& text) {
  const auto& [name, help, type, labels, buckets] = family.description;
  text += "# HELP " + name + " " + escape(help, false) + "\n";
  text += "# TYPE " + name + " " + type_name(type) + "\n";
  for (const auto& [values, series] : family.series) {
    if (type != Type::kHistogram) {
      text += name + label_text(labels, values, "") + " " + number(series.value) + "\n";
      continue;
    }
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      below += series.counts[i];
      text += name + "_bucket" + label_text(labels, values, number(buckets[i])) + " " +
              std::to_string(below) + "\n";
    }
    text += name + "_bucket" + label_text(labels, values, "+Inf") + " " +
            std::to_string(series.count) + "\n";
    const std::string plain = label_text(labels, values, "");
    text += name + "_sum" + plain + " " + number(series.value) + "\n";
    text += name + "_count" + plain + " " + std::to_string(series.count) + "\n";
  }
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Family& family : families_) write(family, text);
  return text;
}

}  // namespace fettle::op
