#include "trainer/data/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace fettle::trainer {

namespace {

static_assert(std::endian::native == std::endian::little, "NPY files are little-endian here");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostDimensions = 32;  // numpy's limit
constexpr std::int64_t kLargestSide = 1 << 24;
constexpr std::int64_t kMostClasses = 1 << 20;

std::int64_t size_of(NpyType type) {
  switch (type) {
    case NpyType::kUint8:
      return 1;
    case NpyType::kUint16:
      return 2;
    case NpyType::kInt32:
    case NpyType::kFloat32:
      return 4;
    default:
      return 8;
  }
}

std::string name_of(NpyType type) {
  switch (type) {
    case NpyType::kUint8:
      return "uint8";
    case NpyType::kUint16:
      return "uint16";
    case NpyType::kInt32:
      return "int32";
    case NpyType::kInt64:
      return "int64";
    default:
      return "float32";
  }
}

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.view().data()), bytes.size()};
}

// Makes text of an arbitrary file safe for a terminal.
std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string safe;
  for (const char c : text.substr(0, kMost)) safe += c >= ' ' && c <= '~' ? c : '?';
  return safe + (text.size() > kMost ? "..." : "");
}

std::string to_string(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t side : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(side);
  }
  return text + "]";
}

// The text after 'key': in the header, a Python dictionary of plain values. Empty: no such key.
std::string_view value_of(std::string_view header, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "'";
  const std::size_t at = header.find(quoted);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + quoted.size());
  const std::size_t colon = header.find_first_not_of(' ');
  if (colon == std::string_view::npos || header[colon] != ':') return {};
  header.remove_prefix(colon + 1);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  const std::size_t end = header.starts_with('(') ? header.find(')') : header.find_first_of(",}");
  if (end == std::string_view::npos) return {};
  return header.substr(0, header.starts_with('(') ? end + 1 : end);
}

// "(2, 3)", "(5,)" or "()".
std::optional<std::vector<std::int64_t>> parse_shape(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::int64_t> shape;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return shape;
    std::int64_t side = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), side);
    if (error != std::errc() || side < 0 || shape.size() == kMostDimensions) return std::nullopt;
    shape.push_back(side);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return shape;
    if (text.front() != ',') return std::nullopt;
    text.remove_prefix(1);
  }
}

Result<NpyType> parse_type(std::string_view text, const std::string& path) {
  if (text == "'|u1'" || text == "'<u1'") return NpyType::kUint8;
  if (text == "'<f4'") return NpyType::kFloat32;
  if (text == "'<u2'") return NpyType::kUint16;
  if (text == "'<i4'") return NpyType::kInt32;
  if (text == "'<i8'") return NpyType::kInt64;
  return invalid(path + " holds numbers of type " + printable(text) +
                 "; expected '|u1' (uint8), '<f4' (float32), '<u2' (uint16), '<i4' (int32) or "
                 "'<i8' (int64); convert them with numpy's astype");
}

// The header's text, and the offset of the values.
struct Header {
  std::string_view text;
  std::size_t end = 0;
};

Result<Header> find_header(const Bytes& file, const std::string& path) {
  const std::string_view text = text_of(file);
  if (!text.starts_with(kMagic)) {
    return invalid(path +
                   " is no NPY file: it does not start with \\x93NUMPY; save it with "
                   "numpy.save");
  }
  const Error cut = invalid(path + " is cut short: it ends within its NPY header");
  if (text.size() < kMagic.size() + 2) return cut;
  const auto byte = [&file](std::size_t i) { return std::size_t{file.view()[i]}; };
  // After the magic: version (two bytes), length of the header's text (two bytes, four in 2.0).
  const std::size_t major = byte(6);
  if ((major != 1 && major != 2) || byte(7) != 0) {
    return invalid(path + " has NPY version " + std::to_string(major) + "." +
                   std::to_string(byte(7)) + "; expected 1.0 or 2.0");
  }
  const std::size_t start = major == 1 ? 10 : 12;
  if (text.size() < start) return cut;
  std::size_t length = byte(8) | byte(9) << 8;
  if (major == 2) length |= byte(10) << 16 | byte(11) << 24;
  if (text.size() - start < length) return cut;
  return Header{text.substr(start, length), start + length};
}

Status check_size(const NpyArray& array, const std::string& path) {
  std::int64_t bytes = size_of(array.type);
  for (const std::int64_t side : array.shape) {
    if (side > 0 && bytes > kMaxDataBytes / side) {
      return invalid(path + " announces more than " + std::to_string(kMaxDataBytes) + " bytes");
    }
    bytes *= side;
  }
  const auto have = static_cast<std::int64_t>(array.values.size());
  if (have == bytes) return success();
  return invalid(path + (have < bytes ? " is cut short: " : " is too long: ") + "its shape " +
                 to_string(array.shape) + " needs " + std::to_string(bytes) + " bytes, it holds " +
                 std::to_string(have));
}

template <class Integer>
std::int64_t whole_at(const Bytes& values, std::int64_t i) {
  Integer value = 0;
  const auto at = static_cast<std::size_t>(i) * sizeof(value);
  std::memcpy(&value, values.view().data() + at, sizeof(value));
  return std::int64_t{value};
}

// ---- Labels ------------------------------------------------------------------------------------

Result<std::vector<std::int32_t>> labels_of(const NpyArray& array, const std::string& path) {
  if (array.shape.size() != 1 || array.type == NpyType::kFloat32) {
    return invalid(path + " has shape " + to_string(array.shape) +
                   (array.type == NpyType::kFloat32 ? " of float32" : "") +
                   "; expected labels: whole numbers of shape [n]");
  }
  std::vector<std::int32_t> labels(static_cast<std::size_t>(array.shape[0]));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t label = integer_at(array, static_cast<std::int64_t>(i));
    if (label < 0 || label >= kMostClasses) {
      return invalid(path + " has the label " + std::to_string(label) + " at " + std::to_string(i) +
                     "; expected 0 to " + std::to_string(kMostClasses - 1));
    }
    labels[i] = static_cast<std::int32_t>(label);
  }
  return labels;
}

// ---- Images ------------------------------------------------------------------------------------

Result<kernels::ImageShape> image_shape(const NpyArray& array, const std::string& path) {
  const auto& sides = array.shape;
  // All sides but the number of images, which read_npy() has checked.
  const bool fits = std::all_of(sides.begin() + 1, sides.end(), [](std::int64_t side) {
    return side >= 1 && side <= kLargestSide;
  });
  const bool pixels = array.type == NpyType::kUint8 || array.type == NpyType::kFloat32;
  if (!fits || sides.size() < 2 || sides.size() > 4 || !pixels) {
    return invalid(path + " has shape " + to_string(sides) +
                   (pixels ? "" : " of " + name_of(array.type)) +
                   "; expected images: uint8 or float32 of shape [n, height, width], [n, height, "
                   "width, channels] or [n, numbers]");
  }
  FETTLE_TRY(refuse_channels_first(sides, path));
  if (sides.size() == 2) return kernels::ImageShape{1, 1, sides[1]};  // one pixel
  return kernels::ImageShape{sides[1], sides[2], sides.size() == 4 ? sides[3] : 1};
}

// Values may be unaligned in a mapped file; floats are read as floats, so they must be aligned.
Bytes aligned(const Bytes& values) {
  const auto address = reinterpret_cast<std::uintptr_t>(values.view().data());
  return address % alignof(float) == 0 ? values : Bytes::copy_of(values.view());
}

Status check_finite(const Bytes& values, const kernels::ImageShape& shape,
                    const std::string& path) {
  const auto* floats = reinterpret_cast<const float*>(values.view().data());
  const auto count = static_cast<std::int64_t>(values.size() / sizeof(float));
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::isfinite(floats[i])) continue;
    return invalid(path + " has the value " + std::to_string(floats[i]) + " in image " +
                   std::to_string(i / shape.size()) + "; expected finite numbers");
  }
  return success();
}

Result<ImageSet> with_labels(const NpyArray& images, const kernels::ImageShape& shape,
                             std::vector<std::int32_t> labels, const std::string& path) {
  if (images.type == NpyType::kUint8) {
    return ImageSet(shape, PixelType::kByte, images.values, std::move(labels));
  }
  const Bytes values = aligned(images.values);
  FETTLE_TRY(check_finite(values, shape, path));
  return ImageSet(shape, PixelType::kFloat, values, std::move(labels));
}

}  // namespace

Result<NpyArray> parse_npy(Bytes file, const std::string& path) {
  FETTLE_ASSIGN(const Header header, find_header(file, path));
  const std::string_view order = value_of(header.text, "fortran_order");
  const auto shape = parse_shape(value_of(header.text, "shape"));
  const std::string_view type = value_of(header.text, "descr");
  if (!shape || type.empty() || (order != "True" && order != "False")) {
    return invalid(path + " has a damaged NPY header: " + printable(header.text) +
                   "; expected descr, fortran_order and shape");
  }
  NpyArray array;
  FETTLE_ASSIGN(array.type, parse_type(type, path));
  if (order == "True" && shape->size() > 1) {  // with one dimension both orders are the same
    return invalid(path + " is in Fortran order; expected C order (numpy.ascontiguousarray)");
  }
  array.shape = *shape;
  const auto values = file.view().subspan(header.end);
  array.values = Bytes(std::make_shared<Bytes>(std::move(file)), values);
  FETTLE_TRY(check_size(array, path));
  return array;
}

Result<NpyArray> read_npy(const std::string& path, const std::string& what, DataCache& cache) {
  FETTLE_ASSIGN(Bytes file, cache.read(path));
  FETTLE_ASSIGN(NpyArray array, parse_npy(std::move(file), path));
  if (array.shape.empty() || array.shape[0] == 0) return invalid(path + " holds no " + what);
  return array;
}

std::int64_t integer_at(const NpyArray& array, std::int64_t i) {
  switch (array.type) {
    case NpyType::kUint8:
      return whole_at<std::uint8_t>(array.values, i);
    case NpyType::kUint16:
      return whole_at<std::uint16_t>(array.values, i);
    case NpyType::kInt32:
      return whole_at<std::int32_t>(array.values, i);
    default:
      return whole_at<std::int64_t>(array.values, i);
  }
}

Result<ImageSet> read_npy_image_set(const std::string& images, const std::string& labels,
                                    DataCache& cache) {
  FETTLE_ASSIGN(const NpyArray labels_array, read_npy(labels, "labels", cache));
  FETTLE_ASSIGN(std::vector<std::int32_t> numbers, labels_of(labels_array, labels));
  FETTLE_ASSIGN(const NpyArray images_array, read_npy(images, "images", cache));
  FETTLE_ASSIGN(const kernels::ImageShape shape, image_shape(images_array, images));
  if (images_array.shape[0] != std::ssize(numbers)) {
    return invalid(images + " holds " + std::to_string(images_array.shape[0]) + " images, but " +
                   labels + " holds " + std::to_string(numbers.size()) +
                   " labels; they must be as many");
  }
  return with_labels(images_array, shape, std::move(numbers), images);
}

Result<ImageSet> read_npy_images(const std::string& path, DataCache& cache) {
  FETTLE_ASSIGN(const NpyArray array, read_npy(path, "images", cache));
  FETTLE_ASSIGN(const kernels::ImageShape shape, image_shape(array, path));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(array.shape[0]), 0);
  return with_labels(array, shape, std::move(labels), path);
}

std::string npy_head(const std::string& type, const std::vector<std::int64_t>& shape) {
  std::string sides;
  for (const std::int64_t side : shape) sides += std::to_string(side) + ", ";
  if (shape.size() > 1) sides.resize(sides.size() - 2);
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + sides + "), }";
  constexpr std::size_t kAlignment = 64;  // of the values
  constexpr std::size_t kBefore = 10;     // magic, version, length
  header.resize((kBefore + header.size()) / kAlignment * kAlignment + kAlignment - kBefore, ' ');
  header.back() = '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(header.size() & 255);
  head += static_cast<char>(header.size() >> 8);
  return head + header;
}

}  // namespace fettle::trainer
