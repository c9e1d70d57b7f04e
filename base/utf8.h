// UTF-8: finds the ends of characters and bytes that are not UTF-8. Pure functions on any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fettle {

// Bytes of the first character of `text`; 0 if it is not UTF-8 (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF) or `text` is empty.
std::size_t utf8_length(std::string_view text);

// The code point of `character`, whose length is that of utf8_length().
char32_t utf8_code_point(std::string_view character);

bool is_utf8(std::string_view text);

// `text` in at most `most` bytes (at least 3): longer text is cut between two characters and ends
// with "...". Bytes that are not UTF-8 become '?'.
std::string utf8_excerpt(std::string_view text, std::size_t most);

}  // namespace fettle
