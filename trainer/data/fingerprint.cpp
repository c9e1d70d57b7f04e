#include "trainer/data/fingerprint.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/philox.h"
#include "trainer/data/training_data.h"

namespace fettle::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as little-endian");

std::string_view name_of(PixelType type) {
  switch (type) {
    case PixelType::kByte:
      return "uint8";
    case PixelType::kFloat:
      return "float32";
    case PixelType::kToken:
      return "token";
  }
  return "";
}

std::span<const std::uint8_t> bytes_of(const void* first, std::int64_t count) {
  return {static_cast<const std::uint8_t*>(first), static_cast<std::size_t>(count)};
}

Json fingerprint_of_set(const ImageSet& set) {
  const kernels::Samples samples = set.samples();
  Json json = Json::object({{"samples", set.size()},
                            {"classes", set.classes()},
                            {"shape", to_string(set.shape())},
                            {"type", name_of(set.pixel_type())}});
  json.set("pixels", hexadecimal(content_hash(bytes_of(samples.pixels, set.pixel_bytes()))));
  if (samples.labels == nullptr) return json;
  const std::int64_t label_bytes = set.bytes() - set.pixel_bytes();
  json.set("labels", hexadecimal(content_hash(bytes_of(samples.labels, label_bytes))));
  return json;
}

const Json& member(const Json& object, std::string_view key) {
  static const Json kNothing;
  const Json* const found = object.is_object() ? object.find(key) : nullptr;
  return found == nullptr ? kNothing : *found;
}

std::string plain(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

}  // namespace

// Four lanes, because each product waits for the previous one. A lane maps each word bijectively,
// so a single differing word always changes the result.
std::uint64_t content_hash(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kLanes = 4;
  constexpr std::size_t kBlock = kLanes * sizeof(std::uint64_t);
  constexpr std::uint64_t kPrime = 0x9FB21C651E98DF25;  // odd
  std::array<std::uint64_t, kLanes> lanes = {1, 2, 3, 4};
  const std::size_t whole = bytes.size() / kBlock * kBlock;
  for (std::size_t at = 0; at < whole; at += kBlock) {
    std::array<std::uint64_t, kLanes> words{};
    std::memcpy(words.data(), bytes.data() + at, kBlock);
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t mixed = (lanes[i] ^ words[i]) * kPrime;
      lanes[i] = mixed ^ (mixed >> 29);
    }
  }
  std::uint64_t hash = bytes.size();
  for (const std::uint64_t lane : lanes) hash = mix_keys(hash, lane);
  for (std::size_t at = whole; at < bytes.size(); ++at) hash = mix_keys(hash, bytes[at]);
  return hash;
}

std::string hexadecimal(std::uint64_t value, int digits) {
  std::string text;
  for (int shift = 4 * digits - 4; shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[value >> shift & 15];
  }
  return text;
}

std::string DataFingerprint::digest() const {
  if (!is_known()) return "not known";
  const std::string text = to_json(*this).dump();
  return hexadecimal(content_hash(bytes_of(text.data(), std::ssize(text))) >> 32, 8);
}

DataFingerprint fingerprint_of(const ImageSet& train, const api::NormalizeConfig& normalize,
                               const ImageSet* test) {
  DataFingerprint fingerprint;
  fingerprint.train = fingerprint_of_set(train);
  // Floats, as in normalising: the last bits of a double depend on the compiler.
  fingerprint.normalize = Json::array();
  for (const double value : {normalize.mean, normalize.std}) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    fingerprint.normalize.push_back(hexadecimal(bits, 8));
  }
  if (test != nullptr) fingerprint.test = fingerprint_of_set(*test);
  return fingerprint;
}

Json to_json(const DataFingerprint& fingerprint) {
  Json json = Json::object({{"train", fingerprint.train}, {"normalize", fingerprint.normalize}});
  if (!fingerprint.test.is_null()) json.set("test", fingerprint.test);
  return json;
}

DataFingerprint read_fingerprint(const Json& json) {
  return {member(json, "train"), member(json, "normalize"), member(json, "test")};
}

std::string difference_of_sets(const Json& there, const Json& here) {
  if (there == here || there.is_null() || here.is_null()) return "";
  const auto differ = [&](std::string_view key) { return member(there, key) != member(here, key); };
  const auto both = [&](std::string_view key) {
    return plain(member(there, key)) + " there, " + plain(member(here, key)) + " here";
  };
  if (differ("samples")) return "samples: " + both("samples");
  if (differ("shape")) return "shape: " + both("shape");
  if (differ("type")) return "type: " + both("type");
  if (differ("pixels")) {
    return "as many samples, but others (content " + both("pixels") + ")";
  }
  if (differ("classes")) return "classes: " + both("classes");
  return "the same samples with other labels (content " + both("labels") + ")";
}

}  // namespace fettle::trainer
