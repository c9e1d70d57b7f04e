#include "api/gpu/gpu_slots.h"

#include <cmath>

#include "base/check.h"

namespace fettle::api {
namespace {

constexpr double kRounding = 1e9;  // of fractions: multiples of a step carry noise

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Returns the position past the brace of the slot that begins at text[start]; npos if none does.
std::size_t slot_end(std::string_view text, std::size_t start) {
  std::size_t end = start + 1;
  while (end < text.size() && is_letter(text[end])) ++end;
  const bool closed = end > start + 1 && end < text.size() && text[end] == '}';
  return closed ? end + 1 : std::string_view::npos;
}

Json value_of(std::string_view slot, const GpuSlotValues& values) {
  if (slot == "count") return values.count;
  if (slot == "fraction") return std::round(values.fraction * kRounding) / kRounding;
  if (slot == "percent") return values.percent;
  if (slot == "units") return values.units;
  CHECK(slot == "mib" && values.mib, "a profile was checked, and yet a slot has no value");
  return *values.mib;
}

std::string_view name_in(std::string_view slot) { return slot.substr(1, slot.size() - 2); }

}  // namespace

std::set<std::string> slots_of(std::string_view text) {
  std::set<std::string> found;
  for (std::size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    const std::size_t end = slot_end(text, at);
    if (end != text.npos) found.emplace(name_in(text.substr(at, end - at)));
  }
  return found;
}

std::set<std::string> slots_in(const Json& value) {
  std::set<std::string> found;
  if (value.is_string()) return slots_of(value.as_string());
  if (value.is_array()) {
    for (const Json& item : value.as_array()) found.merge(slots_in(item));
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) found.merge(slots_in(member));
  }
  return found;
}

std::string fill_slots(std::string_view text, const GpuSlotValues& values) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '{' ? slot_end(text, at) : text.npos;
    if (end == text.npos) {
      out += text[at++];
      continue;
    }
    out += value_of(name_in(text.substr(at, end - at)), values).dump();
    at = end;
  }
  return out;
}

Json fill_slots_in(const Json& value, const GpuSlotValues& values) {
  if (value.is_string()) {
    const std::string& text = value.as_string();
    const bool alone = !text.empty() && text[0] == '{' && slot_end(text, 0) == text.size();
    return alone ? value_of(name_in(text), values) : Json(fill_slots(text, values));
  }
  if (value.is_array()) {
    return Json::array_of(value.as_array(),
                          [&](const Json& item) { return fill_slots_in(item, values); });
  }
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (const auto& [key, member] : value.as_object()) out.set(key, fill_slots_in(member, values));
  return out;
}

}  // namespace fettle::api
