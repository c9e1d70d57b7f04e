// Syntax of Kubernetes' labels (keys and values) and names of objects, as predicates and as
// patterns for a schema. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace fettle::api {

inline constexpr std::size_t kLongestLabelName = 63;  // also of a label's value
inline constexpr std::size_t kLongestDomain = 253;
inline constexpr std::size_t kLongestLabelKey = kLongestDomain + 1 + kLongestLabelName;

// Letters, digits, '-', '_' and '.' between letters or digits, or "".
bool is_label_value(std::string_view text);
// "gpu" or "nvidia.com/gpu": a name, optionally after a domain.
bool is_label_key(std::string_view text);
// "a.example.com": lower-case letters, digits and '-', between letters or digits, in parts.
bool is_dns_subdomain(std::string_view text);
bool is_dns_label(std::string_view text);

// The pattern does not limit the length of a key's domain: schemas have no look-ahead.
inline constexpr std::string_view kLabelValuePattern =
    "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
inline constexpr std::string_view kLabelKeyPattern =
    R"(^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?)"
    R"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$)";
inline constexpr std::string_view kDnsSubdomainPattern =
    R"(^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$)";

}  // namespace fettle::api
