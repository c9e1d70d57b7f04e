#include "trainer/data/image_set.h"

#include <atomic>
#include <utility>
#include <vector>

#include "base/check.h"

namespace fettle::trainer {

namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Big-endian header: 0, 0, type of the elements, number of dimensions, then the dimensions.
struct IdxHeader {
  std::vector<std::int64_t> dimensions;
  std::size_t bytes = 0;  // of the header itself
  std::int64_t elements = 1;
};

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::int64_t kMaxImageSide = 1 << 14;

std::int64_t big_endian(std::span<const std::uint8_t> four) {
  return static_cast<std::int64_t>(four[0]) << 24 | static_cast<std::int64_t>(four[1]) << 16 |
         static_cast<std::int64_t>(four[2]) << 8 | static_cast<std::int64_t>(four[3]);
}

std::string hex(std::int64_t value) {
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 15];
  return text;
}

// `what`: "images" or "labels"; they must have `fewest` to `most` dimensions.
Result<IdxHeader> read_header(std::span<const std::uint8_t> file, const std::string& path,
                              const std::string& what, int fewest, int most) {
  const std::string expected =
      "; expected an IDX file of " + what + " (magic " + hex(kUnsignedByte << 8 | fewest) + ")";
  if (file.size() < 4) {
    return invalid(path + " has " + std::to_string(file.size()) + " bytes, no IDX header" +
                   expected);
  }
  const int count = file[3];  // of dimensions
  if (file[0] != 0 || file[1] != 0 || file[2] != kUnsignedByte || count < fewest || count > most) {
    return invalid(path + " starts with " + hex(big_endian(file)) + expected);
  }
  IdxHeader header;
  header.bytes = 4 + 4 * static_cast<std::size_t>(count);
  if (file.size() < header.bytes) return invalid(path + " ends within its IDX header");
  for (int i = 0; i < count; ++i) {
    const std::int64_t size = big_endian(file.subspan(4 + 4 * static_cast<std::size_t>(i), 4));
    // Limited sides keep the product within 64 bits.
    if (i > 0 && (size < 1 || size > kMaxImageSide)) {
      return invalid(path + " says its images have a side of " + std::to_string(size) +
                     " pixels; 1 to " + std::to_string(kMaxImageSide) + " are possible");
    }
    header.dimensions.push_back(size);
    if (header.elements > kMaxDataBytes / std::max<std::int64_t>(size, 1)) {
      return invalid(path + " announces more than " + std::to_string(kMaxDataBytes) + " bytes");
    }
    header.elements *= size;
  }
  return header;
}

struct IdxFile {
  IdxHeader header;
  Bytes values;
};

Result<IdxFile> read_idx(const std::string& path, const std::string& what, int fewest, int most,
                         DataCache& cache) {
  FETTLE_ASSIGN(Bytes file, cache.read(path));
  FETTLE_ASSIGN(IdxHeader header, read_header(file.view(), path, what, fewest, most));
  const auto have = static_cast<std::int64_t>(file.size() - header.bytes);
  if (header.dimensions[0] == 0) return invalid(path + " holds no " + what);
  if (have != header.elements) {
    return invalid(path + (have < header.elements ? " is cut short: " : " is too long: ") +
                   "its header announces " + std::to_string(header.elements) + " bytes of " + what +
                   ", it holds " + std::to_string(have));
  }
  const auto view = file.view().subspan(header.bytes);
  // The values are a part of the file's bytes, which they keep alive.
  return IdxFile{std::move(header), Bytes(std::make_shared<Bytes>(std::move(file)), view)};
}

}  // namespace

ImageSet::ImageSet(kernels::ImageShape shape, Bytes pixels, const Bytes& labels)
    : ImageSet(shape, PixelType::kByte, std::move(pixels),
               {labels.view().begin(), labels.view().end()}) {}

ImageSet::ImageSet(kernels::ImageShape shape, PixelType type, Bytes pixels,
                   std::vector<std::int32_t> labels)
    : serial_(next_serial()),
      shape_(shape),
      type_(type),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)),
      size_(std::ssize(labels_)) {
  const std::int64_t bytes = type == PixelType::kByte ? 1 : sizeof(float);
  CHECK(static_cast<std::int64_t>(pixels_.size()) == size() * shape_.size() * bytes,
        "as many pixels as labels need");
  for (const std::int32_t label : labels_) {
    classes_ = std::max<std::int64_t>(classes_, std::int64_t{label} + 1);
  }
}

ImageSet ImageSet::of_text(Bytes tokens, std::int64_t length, std::int64_t classes) {
  const auto count = static_cast<std::int64_t>(tokens.size() / sizeof(std::uint16_t));
  CHECK(length > 0 && count > length, "a piece and its last label");
  ImageSet set;
  set.serial_ = next_serial();
  set.shape_ = {length, 1, 1};
  set.type_ = PixelType::kToken;
  set.pixels_ = std::move(tokens);
  set.size_ = (count - 1) / length;  // the last token is only a label
  set.classes_ = classes;
  return set;
}

std::int64_t ImageSet::pixel_bytes() const {
  const std::int64_t pixels = size_ * shape_.size();
  if (type_ == PixelType::kByte) return pixels;
  if (type_ == PixelType::kFloat) return pixels * std::int64_t{sizeof(float)};
  // One token more: the label of the last one.
  return (pixels + 1) * std::int64_t{sizeof(std::uint16_t)};
}

std::int64_t ImageSet::bytes() const {
  return pixel_bytes() + std::ssize(labels_) * std::int64_t{sizeof(std::int32_t)};
}

Status refuse_channels_first(std::span<const std::int64_t> sides, const std::string& path) {
  constexpr std::int64_t kMostColours = 4;
  if (sides.size() != 4 || sides[1] > kMostColours || sides[2] != sides[3] ||
      sides[3] <= kMostColours) {
    return success();
  }
  std::string shape = "[n";
  for (const std::int64_t side : sides.subspan(1)) shape += ", " + std::to_string(side);
  return invalid(path + " has images of shape " + shape +
                 "], which looks like [n, channels, height, width]; expected [n, height, width, "
                 "channels]: numpy.ascontiguousarray(x.transpose(0, 2, 3, 1))");
}

Result<ImageSet> read_image_set(const std::string& images, const std::string& labels,
                                DataCache& cache) {
  FETTLE_ASSIGN(IdxFile labels_file, read_idx(labels, "labels", 1, 1, cache));
  FETTLE_ASSIGN(IdxFile images_file, read_idx(images, "images", 3, 4, cache));
  const auto& sides = images_file.header.dimensions;
  if (sides[0] != labels_file.header.dimensions[0]) {
    return invalid(images + " holds " + std::to_string(sides[0]) + " images, but " + labels +
                   " holds " + std::to_string(labels_file.header.dimensions[0]) +
                   " labels; they must be as many");
  }
  FETTLE_TRY(refuse_channels_first(sides, images));
  const kernels::ImageShape shape{sides[1], sides[2], sides.size() == 4 ? sides[3] : 1};
  return ImageSet(shape, std::move(images_file.values), labels_file.values);
}

}  // namespace fettle::trainer
