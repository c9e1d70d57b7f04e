#include "kube/transport/base64.h"

#include <cstdint>

namespace fettle::kube {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0u);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= group.size() ? kAlphabet[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int letters = 0;
  int padding = 0;
  for (const char letter : text) {
    if (letter == '\n' || letter == '\r') continue;
    const std::size_t value = letter == '=' ? 0 : kAlphabet.find(letter);
    if (value == std::string_view::npos || (padding > 0 && letter != '=')) return std::nullopt;
    if (letter == '=') ++padding;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if (++letters % 4 != 0) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 255);
    bits = 0;
  }
  if (letters % 4 != 0 || padding > 2) return std::nullopt;
  out.resize(out.size() - static_cast<std::size_t>(padding));
  return out;
}

}  // namespace fettle::kube
