#include "trainer/checkpoint/checkpoint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/philox.h"

namespace fettle::trainer {

namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

constexpr std::array<char, 8> kMagic = {'F', 'E', 'T', 'T', 'L', 'E', 'C', 'P'};
constexpr std::uint32_t kVersion = 1;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t metadata_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Header) == 32);

// A running checksum over 64-bit words, the last one padded with zeros: every word changes all bits
// of the result. The parts of a file are added one after the other.
class Checksum {
 public:
  explicit Checksum(std::uint64_t bytes) : sum_(bytes) {}

  void add(std::string_view bytes) {
    while (filled_ > 0 && !bytes.empty()) take(bytes, 1);
    while (bytes.size() >= sizeof(word_)) take(bytes, sizeof(word_));
    if (!bytes.empty()) take(bytes, bytes.size());
  }
  std::uint64_t result() const { return filled_ > 0 ? mix_keys(sum_, word_) : sum_; }

 private:
  void take(std::string_view& bytes, std::size_t count) {
    std::memcpy(reinterpret_cast<char*>(&word_) + filled_, bytes.data(), count);
    bytes.remove_prefix(count);
    filled_ += count;
    if (filled_ < sizeof(word_)) return;
    sum_ = mix_keys(sum_, std::exchange(word_, 0));
    filled_ = 0;
  }

  std::uint64_t sum_;
  std::uint64_t word_ = 0;  // the incomplete word; its rest is zeros
  std::size_t filled_ = 0;  // bytes of word_
};

std::uint64_t checksum_of(std::string_view bytes) {
  Checksum sum(bytes.size());
  sum.add(bytes);
  return sum.result();
}

Json write_metadata(const Checkpoint& c) {
  Json json = Json::object();
  json.set("layout", c.layout);
  json.set("settings", c.settings);
  if (!c.data.is_null()) json.set("data", c.data);
  json.set("epoch", c.position.epoch);
  json.set("offset", c.position.offset);
  json.set("updates", c.updates);
  json.set("lossSum", c.sums.loss);
  json.set("lossSamples", c.sums.samples);
  json.set("lossScale", c.loss_scale.scale);
  json.set("goodSteps", c.loss_scale.good_steps);
  json.set("skippedSteps", c.loss_scale.skipped_steps);
  json.set("metrics", c.metrics);
  if (!c.int8_ranges.empty()) {
    json.set("int8Ranges",
             Json::array_of(std::vector<double>(c.int8_ranges.begin(), c.int8_ranges.end())));
  }
  Json sizes = Json::array();
  for (const auto* array : {&c.weights, &c.statistics, &c.state1, &c.state2}) {
    sizes.push_back(static_cast<std::int64_t>(array->size()));
  }
  json.set("arrays", std::move(sizes));
  return json;
}

// Returns false if the member is missing or of another type.
bool read_integer(const Json& json, std::string_view key, std::int64_t& to) {
  const Json* value = json.find(key);
  if (value == nullptr || !value->is_integer()) return false;
  to = value->as_integer();
  return to >= 0;
}

// Checkpoints written before fp16 existed have no loss scale; `to` then keeps its initial value.
bool read_loss_scale(const Json& json, kernels::LossScale& to) {
  const Json* scale = json.find("lossScale");
  if (scale == nullptr) return true;
  if (!scale->is_number() || !(scale->as_double() > 0)) return false;
  to.scale = scale->as_double();
  return read_integer(json, "goodSteps", to.good_steps) &&
         read_integer(json, "skippedSteps", to.skipped_steps);
}

// Absent: the training has no 8-bit network.
bool read_ranges(const Json& json, std::vector<float>& to) {
  const Json* ranges = json.find("int8Ranges");
  if (ranges == nullptr) return true;
  if (!ranges->is_array()) return false;
  for (const Json& number : ranges->as_array()) {
    if (!number.is_number()) return false;
    to.push_back(static_cast<float>(number.as_double()));
  }
  return true;
}

bool read_metadata(const Json& json, Checkpoint& to) {
  const Json* layout = json.find("layout");
  const Json* settings = json.find("settings");
  const Json* loss = json.find("lossSum");
  const Json* metrics = json.find("metrics");
  if (layout == nullptr || !layout->is_string() || settings == nullptr || loss == nullptr ||
      !loss->is_number() || metrics == nullptr || !metrics->is_object()) {
    return false;
  }
  to.layout = layout->as_string();
  to.settings = *settings;
  if (const Json* data = json.find("data")) to.data = *data;
  to.sums.loss = loss->as_double();
  to.metrics = *metrics;
  return read_integer(json, "epoch", to.position.epoch) &&
         read_integer(json, "offset", to.position.offset) &&
         read_integer(json, "updates", to.updates) &&
         read_integer(json, "lossSamples", to.sums.samples) &&
         read_loss_scale(json, to.loss_scale) && read_ranges(json, to.int8_ranges);
}

// Takes the arrays from `bytes` in their order; returns false unless they fill it exactly.
bool read_arrays(const Json& metadata, std::string_view bytes, Checkpoint& to) {
  const Json* sizes = metadata.find("arrays");
  if (sizes == nullptr || !sizes->is_array() || sizes->as_array().size() != 4) return false;
  std::vector<float>* const arrays[] = {&to.weights, &to.statistics, &to.state1, &to.state2};
  for (std::size_t i = 0; i < 4; ++i) {
    const Json& size = sizes->as_array()[i];
    if (!size.is_integer() || size.as_integer() < 0) return false;
    const auto count = static_cast<std::uint64_t>(size.as_integer());
    if (count > bytes.size() / sizeof(float)) return false;
    arrays[i]->resize(count);
    if (count > 0) std::memcpy(arrays[i]->data(), bytes.data(), count * sizeof(float));
    bytes.remove_prefix(count * sizeof(float));
  }
  return bytes.empty();
}

}  // namespace

CheckpointParts encode_in_parts(const Checkpoint& checkpoint) {
  const std::string metadata = write_metadata(checkpoint).dump();
  const std::array<const std::vector<float>*, 4> arrays = {
      &checkpoint.weights, &checkpoint.statistics, &checkpoint.state1, &checkpoint.state2};
  CheckpointParts parts;
  std::size_t body = metadata.size();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    parts.arrays[i] = {reinterpret_cast<const char*>(arrays[i]->data()),
                       arrays[i]->size() * sizeof(float)};
    body += parts.arrays[i].size();
  }
  Checksum sum(body);
  sum.add(metadata);
  for (const std::string_view array : parts.arrays) sum.add(array);
  Header header;
  header.metadata_bytes = static_cast<std::uint32_t>(metadata.size());
  header.file_bytes = sizeof(Header) + body;
  header.checksum = sum.result();
  parts.head.assign(reinterpret_cast<const char*>(&header), sizeof(Header));
  parts.head += metadata;
  return parts;
}

std::string encode_checkpoint(const Checkpoint& checkpoint) {
  const CheckpointParts parts = encode_in_parts(checkpoint);
  std::string file;
  std::size_t size = parts.head.size();
  for (const std::string_view array : parts.arrays) size += array.size();
  file.reserve(size);  // a string that grows would hold the file twice
  file += parts.head;
  for (const std::string_view array : parts.arrays) file += array;
  return file;
}

Result<Checkpoint> decode_checkpoint(std::string_view bytes, const std::string& name) {
  Header header;
  if (bytes.size() >= kMagic.size() && !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return invalid(name + " is no checkpoint of fettle-trainer");
  }
  if (bytes.size() < sizeof(Header)) {
    return invalid(name + " is cut short: it has " + std::to_string(bytes.size()) + " bytes");
  }
  std::memcpy(&header, bytes.data(), sizeof(Header));
  if (header.version != kVersion) {
    return invalid(name + " has version " + std::to_string(header.version) +
                   "; this fettle-trainer reads version " + std::to_string(kVersion));
  }
  if (bytes.size() != header.file_bytes) {
    return invalid(name + (bytes.size() < header.file_bytes ? " is cut short" : " is too long") +
                   ": it has " + std::to_string(bytes.size()) + " of " +
                   std::to_string(header.file_bytes) + " bytes");
  }
  const std::string_view body = bytes.substr(sizeof(Header));
  const Error damaged = invalid(name + " is damaged: its checksum does not fit its content");
  if (checksum_of(body) != header.checksum || header.metadata_bytes > body.size()) return damaged;
  const auto metadata = parse_json(body.substr(0, header.metadata_bytes));
  Checkpoint checkpoint;
  if (!metadata.ok() || !read_metadata(*metadata, checkpoint) ||
      !read_arrays(*metadata, body.substr(header.metadata_bytes), checkpoint)) {
    return damaged;
  }
  return checkpoint;
}

}  // namespace fettle::trainer
