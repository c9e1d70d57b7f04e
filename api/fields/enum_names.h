// EnumNames: the spelling of an enum's values in documents. The table of an enum is declared beside
// the enum, as names_of(), and found by its type.
// Pure functions; usable from any thread.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace fettle::api {

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

// All values of an enum with their names, in the order in which messages list them.
template <class E>
using EnumNames = std::span<const EnumName<E>>;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires {
  names_of(E{});
};

template <NamedEnum E>
EnumNames<E> enum_names() {
  return names_of(E{});
}

// Every value is in its table, so this always finds one.
template <NamedEnum E>
std::string_view to_string(E value) {
  for (const EnumName<E>& entry : enum_names<E>()) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

// from_string<Direction>("Maximize"); absent for a name that is not in the table.
template <NamedEnum E>
std::optional<E> from_string(std::string_view name) {
  for (const EnumName<E>& entry : enum_names<E>()) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

}  // namespace fettle::api
