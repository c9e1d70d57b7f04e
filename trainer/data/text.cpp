#include "trainer/data/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "api/trainer/trainer_fields.h"
#include "trainer/data/npy.h"

namespace fettle::trainer {

namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian here");

using Tokens = std::vector<std::uint16_t>;

Bytes bytes_of(Tokens tokens) {
  const auto owner = std::make_shared<Tokens>(std::move(tokens));
  const auto* first = reinterpret_cast<const std::uint8_t*>(owner->data());
  return Bytes(owner, {first, owner->size() * sizeof(std::uint16_t)});
}

// The bytes that occur in `text`, ascending.
std::string characters_of(std::span<const std::uint8_t> text) {
  std::array<bool, 256> occurs{};
  for (const std::uint8_t byte : text) occurs[byte] = true;
  std::string characters;
  for (std::size_t byte = 0; byte < occurs.size(); ++byte) {
    if (occurs[byte]) characters += static_cast<char>(byte);
  }
  return characters;
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Error outside(const std::string& path, std::int64_t token, std::int64_t place,
              const std::string& expected) {
  return invalid(path + " has the token " + std::to_string(token) + " at " + std::to_string(place) +
                 "; expected 0 to " + expected);
}

Result<Tokens> numbers_of_npy(const Bytes& file, const std::string& path) {
  FETTLE_ASSIGN(const NpyArray array, parse_npy(file, path));
  if (array.shape.size() != 1 || array.type == NpyType::kFloat32) {
    return invalid(path +
                   " has no list of whole numbers; expected uint8, uint16, int32 or int64 "
                   "of shape [n]");
  }
  Tokens tokens(static_cast<std::size_t>(array.shape[0]));
  for (std::int64_t i = 0; i < array.shape[0]; ++i) {
    const std::int64_t token = integer_at(array, i);
    if (token < 0 || token >= api::kLargestVocabulary) {
      return outside(path, token, i, std::to_string(api::kLargestVocabulary - 1));
    }
    tokens[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(token);
  }
  return tokens;
}

Result<Bytes> tokens_of(const Bytes& file, const std::string& path) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const auto view = file.view();
  const bool npy =
      view.size() >= kMagic.size() && std::memcmp(view.data(), kMagic.data(), kMagic.size()) == 0;
  if (npy) {
    FETTLE_ASSIGN(Tokens tokens, numbers_of_npy(file, path));
    return bytes_of(std::move(tokens));
  }
  if (view.size() % sizeof(std::uint16_t) != 0) {
    return invalid(path + " is cut short: it holds " + std::to_string(view.size()) +
                   " bytes; expected token ids of two bytes each (uint16), or a file by "
                   "numpy.save");
  }
  return file;  // mapped (page-aligned) or decompressed into new memory: aligned for uint16
}

}  // namespace

Result<Text> read_characters(const std::string& path, DataCache& cache, const Text* known) {
  FETTLE_ASSIGN(const Bytes file, cache.read(path));
  if (file.size() == 0) return invalid(path + " is empty; expected text");
  Text text;
  text.characters = known == nullptr ? characters_of(file.view()) : known->characters;
  text.vocabulary = std::ssize(text.characters);
  constexpr int kUnknown = -1;
  std::array<int, 256> token_of{};
  token_of.fill(kUnknown);
  for (std::size_t i = 0; i < text.characters.size(); ++i) {
    token_of[static_cast<unsigned char>(text.characters[i])] = static_cast<int>(i);
  }
  Tokens tokens(file.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int token = token_of[file.view()[i]];
    if (token == kUnknown) {
      return invalid(path + " has the byte " + std::to_string(file.view()[i]) + " at " +
                     std::to_string(i) + ", which does not occur in the training text");
    }
    tokens[i] = static_cast<std::uint16_t>(token);
  }
  text.tokens = bytes_of(std::move(tokens));
  return text;
}

Result<Text> read_tokens(const std::string& path, std::int64_t vocabulary, DataCache& cache) {
  FETTLE_ASSIGN(const Bytes file, cache.read(path));
  Text text;
  FETTLE_ASSIGN(text.tokens, tokens_of(file, path));
  if (text.tokens.size() == 0) return invalid(path + " is empty; expected token ids");
  const auto* tokens = reinterpret_cast<const std::uint16_t*>(text.tokens.view().data());
  const std::size_t count = text.tokens.size() / sizeof(std::uint16_t);
  const auto* end = tokens + count;
  const auto* largest = std::max_element(tokens, end);
  text.vocabulary = vocabulary > 0 ? vocabulary : *largest + 1;
  if (*largest < text.vocabulary) return text;
  return outside(
      path, *largest, largest - tokens,
      std::to_string(vocabulary - 1) + ", since the vocabulary is " + std::to_string(vocabulary));
}

Result<ImageSet> cut_text(const Text& text, std::int64_t context, const std::string& path) {
  const auto count = static_cast<std::int64_t>(text.tokens.size() / sizeof(std::uint16_t));
  if (count > context) return ImageSet::of_text(text.tokens, context, text.vocabulary);
  return invalid(path + " holds " + std::to_string(count) + " tokens; a sample of data.context " +
                 std::to_string(context) + " needs " + std::to_string(context + 1) +
                 ", the last being a label; use a smaller context or more text");
}

std::string describe_vocabulary(const Text& text) {
  if (text.characters.empty()) return std::to_string(text.vocabulary) + " tokens";
  return std::to_string(text.vocabulary) + " characters " + hexadecimal(text.characters);
}

}  // namespace fettle::trainer
