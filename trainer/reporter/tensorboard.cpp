#include "trainer/reporter/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/file.h"

namespace fettle::trainer {
namespace {

// The Castagnoli polynomial, bits reversed.
constexpr std::uint32_t kCrcPolynomial = 0x82F63B78;

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> out{};
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? kCrcPolynomial : 0);
    out[i] = rest;
  }
  return out;
}();

// TensorFlow masks checksums: the CRC of data that contain CRCs is a poor one.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ crc >> 8;
  }
  return std::rotr(~crc, 15) + 0xA282EAD8;
}

template <class Bits>
void put_fixed(std::string& to, Bits bits) {
  for (std::size_t i = 0; i < sizeof bits; ++i) {
    to += static_cast<char>(bits >> 8 * i & 0xFF);
  }
}

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7F) | 0x80);
  to += static_cast<char>(value);
}

// The wire types of protobuf in use here.
enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_tag(std::string& to, std::uint32_t field, Wire wire) {
  put_varint(to, std::uint64_t{field} << 3 | static_cast<std::uint64_t>(wire));
}

void put_bytes(std::string& to, std::uint32_t field, std::string_view bytes) {
  put_tag(to, field, Wire::kBytes);
  put_varint(to, bytes.size());
  to += bytes;
}

// Fields of Event, Summary and Summary.Value in TensorFlow's event.proto and summary.proto.
constexpr std::uint32_t kWallTime = 1;
constexpr std::uint32_t kStep = 2;
constexpr std::uint32_t kFileVersion = 3;
constexpr std::uint32_t kSummary = 5;
constexpr std::uint32_t kValue = 1;
constexpr std::uint32_t kTag = 1;
constexpr std::uint32_t kSimpleValue = 2;

std::string event_at(double seconds) {
  std::string out;
  put_tag(out, kWallTime, Wire::kFixed64);
  put_fixed(out, std::bit_cast<std::uint64_t>(seconds));
  return out;
}

}  // namespace

std::string scalar_event(std::int64_t step, const Metrics& metrics, double seconds) {
  std::string summary;
  for (const auto& [name, value] : metrics) {
    std::string scalar;
    put_bytes(scalar, kTag, name);
    put_tag(scalar, kSimpleValue, Wire::kFixed32);
    put_fixed(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    put_bytes(summary, kValue, scalar);
  }
  std::string out = event_at(seconds);
  put_tag(out, kStep, Wire::kVarint);
  put_varint(out, static_cast<std::uint64_t>(step));
  put_bytes(out, kSummary, summary);
  return out;
}

std::string record_of(std::string_view message) {
  std::string out;
  put_fixed(out, std::uint64_t{message.size()});
  put_fixed(out, masked_crc(out));
  out += message;
  put_fixed(out, masked_crc(message));
  return out;
}

Result<TensorBoardFile> TensorBoardFile::create(const std::string& directory, double seconds) {
  FETTLE_TRY(make_directories(directory));
  // TensorBoard recognises its files by this name, and reads those of one directory in name order.
  const std::string path = directory + "/events.out.tfevents." +
                           std::to_string(static_cast<std::int64_t>(seconds)) + ".fettle." +
                           std::to_string(::getpid());
  File file(std::fopen(path.c_str(), "wbe"));
  if (!file) return io_error(path + ": " + system_message(errno));
  TensorBoardFile out(path, std::move(file));
  // The first record of every event file.
  std::string version = event_at(seconds);
  put_bytes(version, kFileVersion, "brain.Event:2");
  FETTLE_TRY(out.write(version));
  return out;
}

Status TensorBoardFile::add(std::int64_t step, const Metrics& metrics, double seconds) {
  return write(scalar_event(step, metrics, seconds));
}

Status TensorBoardFile::write(std::string_view event) {
  const std::string record = record_of(event);
  const bool written = std::fwrite(record.data(), 1, record.size(), file_.get()) == record.size();
  if (written && std::fflush(file_.get()) == 0) return success();
  return io_error(path_ + ": " + system_message(errno));
}

}  // namespace fettle::trainer
