#include "kube/testing/fake_selector.h"

#include <functional>
#include <optional>

namespace fettle::kube {
namespace {

using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

bool meets(std::string_view term, const Lookup& lookup) {
  if (term.starts_with('!')) return !lookup(std::string(term.substr(1)));
  const std::size_t equals = term.find('=');
  if (equals == std::string_view::npos) return lookup(std::string(term)).has_value();
  const bool unequal = equals > 0 && term[equals - 1] == '!';
  const std::string_view name = term.substr(0, unequal ? equals - 1 : equals);
  std::string_view value = term.substr(equals + 1);
  if (value.starts_with('=')) value.remove_prefix(1);
  return (lookup(std::string(name)) == value) != unequal;
}

bool meets_all(std::string_view selector, const Lookup& lookup) {
  while (!selector.empty()) {
    const std::size_t comma = selector.find(',');
    if (!meets(selector.substr(0, comma), lookup)) return false;
    if (comma == std::string_view::npos) return true;
    selector.remove_prefix(comma + 1);
  }
  return true;
}

std::optional<std::string> text_of(const Json* value) {
  if (value == nullptr || value->is_null()) return std::nullopt;
  return value->is_string() ? value->as_string() : value->dump();
}

const Json* at_path(const Json& object, std::string_view path) {
  const Json* value = &object;
  while (value != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    value = value->find(path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return value;
}

}  // namespace

bool matches(const Json& object, const FakeSelector& selector) {
  const Json* labels = at_path(object, "metadata.labels");
  const auto label = [&](const std::string& name) {
    return text_of(labels == nullptr ? nullptr : labels->find(name));
  };
  const auto field = [&](const std::string& name) { return text_of(at_path(object, name)); };
  return meets_all(selector.labels, label) && meets_all(selector.fields, field);
}

}  // namespace fettle::kube
