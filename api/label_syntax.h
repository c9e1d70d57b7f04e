// What Kubernetes takes for the keys and values of labels, and for names of objects, and the same
// as patterns for a schema. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace fettle::api {

inline constexpr std::size_t kLongestLabelName = 63;  // also of a label's value
inline constexpr std::size_t kLongestDomain = 253;
inline constexpr std::size_t kLongestLabelKey = kLongestDomain + 1 + kLongestLabelName;

// Letters, digits, '-', '_' and '.' between letters or digits; "" is one, too.
bool is_label_value(std::string_view text);
// "gpu" or "nvidia.com/gpu": a name and perhaps a domain before it.
bool is_label_key(std::string_view text);
// "a.example.com": lower-case letters, digits and '-', between letters or digits, in parts.
bool is_dns_subdomain(std::string_view text);
bool is_dns_label(std::string_view text);

// That a key's domain is not too long is not in its pattern: schemas have no look-ahead.
inline constexpr std::string_view kLabelValuePattern =
    "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
inline constexpr std::string_view kLabelKeyPattern =
    R"(^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?)"
    R"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$)";
inline constexpr std::string_view kDnsSubdomainPattern =
    R"(^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$)";

}  // namespace fettle::api
