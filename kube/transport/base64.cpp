#include "kube/transport/base64.h"

#include <openssl/evp.h>

#include <string>

namespace fettle::kube {
namespace {

// OpenSSL counts bytes as int; certificates and keys are far smaller.
constexpr std::size_t kMaxLetters = 64 << 20;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  // EVP_EncodeBlock writes a terminating NUL, for which a std::string has space.
  std::string out((bytes.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(bytes),
                  static_cast<int>(bytes.size()));
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string letters(text);
  std::erase_if(letters, [](char c) { return c == '\n' || c == '\r'; });
  // EVP_DecodeBlock trims blanks, takes padding for zeros anywhere, and does not report its length.
  const std::size_t padding = letters.size() - (letters.find_last_not_of('=') + 1);
  const bool is_formed = letters.size() % 4 == 0 && padding <= 2 &&
                         letters.find('=') >= letters.size() - padding &&
                         letters.find_first_of(" \t") == std::string::npos;
  if (!is_formed || letters.size() > kMaxLetters) return std::nullopt;
  std::string out(letters.size() / 4 * 3, '\0');
  const int decoded = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                      bytes_of(letters), static_cast<int>(letters.size()));
  if (decoded < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(decoded) - padding);
  return out;
}

}  // namespace fettle::kube
