// UTF-8: where characters end, and what is none. Pure functions on any bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace fettle {

// Bytes of the first character of `text`; 0 where it is not UTF-8 (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF) or `text` is empty.
std::size_t utf8_length(std::string_view text);

// The code point of `character`, which is as long as utf8_length says.
char32_t utf8_code_point(std::string_view character);

bool is_utf8(std::string_view text);

}  // namespace fettle
