#include "runtime/local/store/stored_json.h"

#include <algorithm>
#include <utility>

namespace fettle::local {
namespace {

Json carry_over_map(const Json& stored, const Json& before, const Json& after) {
  Json out = stored;
  // Only fields that this version read: an unknown field is in neither.
  for (const auto& [key, value] : before.as_object()) {
    if (after.find(key) == nullptr) out.erase(key);
  }
  for (const auto& [key, value] : after.as_object()) {
    const Json* const in_stored = stored.find(key);
    const Json* const in_before = before.find(key);
    const bool known = in_stored != nullptr && in_before != nullptr;
    out.set(key, known ? carry_over(*in_stored, *in_before, value) : value);
  }
  return out;
}

Json carry_over_list(const Json& stored, const Json& before, const Json& after) {
  Json::Array out;
  const Json::Array& items = after.as_array();
  const std::size_t common =
      std::min({stored.as_array().size(), before.as_array().size(), after.as_array().size()});
  for (std::size_t i = 0; i < items.size(); ++i) {
    out.push_back(i < common ? carry_over(stored.as_array()[i], before.as_array()[i], items[i])
                             : items[i]);
  }
  return Json(std::move(out));
}

// A null means the same as an absent field, and an item that `known` lacks as a whole is no field.
void find_unknown(const Json& stored, const Json& known, const std::string& path, std::size_t most,
                  std::vector<std::string>& out) {
  if (out.size() >= most) return;
  if (stored.is_object() && known.is_object()) {
    for (const auto& [key, value] : stored.as_object()) {
      const std::string here = path.empty() ? key : path + "." + key;
      const Json* const other = known.find(key);
      if (other != nullptr) {
        find_unknown(value, *other, here, most, out);
      } else if (!value.is_null() && out.size() < most) {
        out.push_back(here);
      }
    }
  } else if (stored.is_array() && known.is_array()) {
    const std::size_t common = std::min(stored.as_array().size(), known.as_array().size());
    for (std::size_t i = 0; i < common; ++i) {
      find_unknown(stored.as_array()[i], known.as_array()[i], path + "[" + std::to_string(i) + "]",
                   most, out);
    }
  }
}

}  // namespace

Json carry_over(const Json& stored, const Json& before, const Json& after) {
  if (before == after) return stored;
  const auto all = [&](bool (Json::*is)() const) {
    return (stored.*is)() && (before.*is)() && (after.*is)();
  };
  if (all(&Json::is_object)) return carry_over_map(stored, before, after);
  if (all(&Json::is_array)) return carry_over_list(stored, before, after);
  return after;
}

std::vector<std::string> unknown_paths(const Json& stored, const Json& known, std::size_t most) {
  std::vector<std::string> out;
  find_unknown(stored, known, "", most, out);
  return out;
}

}  // namespace fettle::local
