// ProtobufWriter: a message of Protocol Buffers, field by field, in the wire format
// (https://protobuf.dev/programming-guides/encoding). A nested message is the bytes of another
// writer. A plain value; usable from any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace fettle::trainer {

class ProtobufWriter {
 public:
  ProtobufWriter& integer(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3U | kVarint);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  // A text, bytes, or a nested message.
  ProtobufWriter& bytes(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3U | kLengthDelimited);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufWriter& message(int field, const ProtobufWriter& value) {
    return bytes(field, value.bytes_);
  }
  ProtobufWriter& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3U | kFixed32);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift);
    return *this;
  }
  ProtobufWriter& integers(int field, std::span<const std::int64_t> values) {
    for (const std::int64_t value : values) integer(field, value);
    return *this;
  }

  std::string take() { return std::move(bytes_); }

 private:
  static constexpr std::uint64_t kVarint = 0;
  static constexpr std::uint64_t kLengthDelimited = 2;
  static constexpr std::uint64_t kFixed32 = 5;

  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(0x80U | (value & 0x7FU));
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace fettle::trainer
