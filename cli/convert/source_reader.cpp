#include "cli/convert/source_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/fields/field.h"
#include "api/study/parameter_env.h"
#include "runtime/metric_pattern.h"

namespace fettle::cli {
namespace {

constexpr std::size_t kMostErrors = 50;
constexpr std::size_t kMostNotes = 200;
constexpr std::size_t kLongestName = 80;  // bytes of a name in a message

}  // namespace

Source Source::member(std::string_view name) const {
  const std::string head = path.empty() ? "" : path + '.';
  return {value == nullptr ? nullptr : value->find(name),
          head + api::clean_text(name, kLongestName)};
}

Source Source::item(std::size_t index) const {
  const bool there = value != nullptr && value->is_array() && index < value->as_array().size();
  return {there ? &value->as_array()[index] : nullptr, path + '[' + std::to_string(index) + ']'};
}

void SourceReader::fail(const Source& at, std::string message) {
  if (out_.errors.size() < kMostErrors) out_.errors.push_back({at.path, std::move(message)});
}

void SourceReader::note(const Source& at, std::string target, std::string text) {
  Note one{at.path, std::move(target), std::move(text)};
  if (out_.notes.size() < kMostNotes) out_.notes.push_back(std::move(one));
}

void SourceReader::expect(const Source& at, std::string_view expected) {
  fail(at, "found " + api::describe(*at.value) + ", expected " + std::string(expected));
}

std::optional<std::string> SourceReader::text(const Source& at) {
  if (!at.present()) return std::nullopt;
  if (!at.value->is_array() && !at.value->is_object()) return api::parameter_env_value(*at.value);
  expect(at, "a text");
  return std::nullopt;
}

std::optional<double> SourceReader::number(const Source& at) {
  if (!at.present()) return std::nullopt;
  std::optional<double> found;
  if (at.value->is_number()) found = at.value->as_double();
  if (at.value->is_string()) found = runtime::parse_number(at.value->as_string());
  if (found && std::isfinite(*found)) return found;
  expect(at, "a finite number");
  return std::nullopt;
}

std::optional<std::int64_t> SourceReader::whole(const Source& at, std::int64_t least,
                                                std::int64_t most) {
  if (!at.present()) return std::nullopt;
  const std::size_t before = out_.errors.size();
  const std::optional<double> found = number(at);
  const bool fits = found && std::trunc(*found) == *found && *found >= static_cast<double>(least) &&
                    *found <= static_cast<double>(most);
  if (fits) return static_cast<std::int64_t>(*found);
  if (out_.errors.size() == before) {
    expect(at, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return std::nullopt;
}

std::vector<Source> SourceReader::items(const Source& at) {
  std::vector<Source> out;
  if (!at.present()) return out;
  if (!at.value->is_array()) {
    expect(at, "a list");
    return out;
  }
  for (std::size_t i = 0; i < at.value->as_array().size(); ++i) out.push_back(at.item(i));
  return out;
}

bool SourceReader::is_map(const Source& at) {
  if (!at.present()) return false;
  if (!at.value->is_object()) expect(at, "a map of fields");
  return at.value->is_object();
}

void SourceReader::lose_others(const Source& map, std::initializer_list<std::string_view> known,
                               const std::string& target) {
  if (map.value == nullptr || !map.value->is_object()) return;
  for (const auto& [name, value] : map.value->as_object()) {
    if (value.is_null() || std::ranges::find(known, name) != known.end()) continue;
    const Source lost = map.member(name);
    note(lost, target, api::clean_text(name, kLongestName) + " has no counterpart and is left out");
  }
}

Conversion SourceReader::take(Json study) {
  out_.study = std::move(study);
  return std::move(out_);
}

}  // namespace fettle::cli
