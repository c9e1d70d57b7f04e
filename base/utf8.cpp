#include "base/utf8.h"

namespace fettle {

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  // A byte below 0xC0 continues a character; 0xC0 and 0xC1 begin only overlong forms.
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and code points above U+10FFFF show in the second byte.
  const bool too_low = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool too_high = (byte(0) == 0xED && byte(1) > 0x9F) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  return too_low || too_high ? 0 : length;
}

char32_t utf8_code_point(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead;
  char32_t code = lead & (0xFFU >> (character.size() + 1));
  for (const char c : character.substr(1)) {
    code = (code << 6) | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return code;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string utf8_excerpt(std::string_view text, std::size_t most) {
  static constexpr std::string_view kDots = "...";
  std::string out;
  std::size_t cut_at = 0;  // where the dots go if the rest does not fit
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (out.size() + kDots.size() <= most) cut_at = out.size();
    out += length == 0 ? std::string_view("?") : text.substr(0, length);
    if (out.size() > most) return out.substr(0, cut_at).append(kDots);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace fettle
