// Base64 (RFC 4648, section 4), as kubeconfig files hold certificates. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fettle::kube {

std::string encode_base64(std::string_view bytes);

// Line breaks are skipped, as Go does; absent for anything else that is not base64 with its
// padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace fettle::kube
