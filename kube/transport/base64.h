// Base64 (RFC 4648, section 4), as kubeconfig files hold certificates. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fettle::kube {

std::string encode_base64(std::string_view bytes);

// Skips line breaks, as Go does; absent for any other text that is not base64 with its padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace fettle::kube
