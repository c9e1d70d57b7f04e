// Gathering in every backend: batches from a data set in the backend's memory, the same everywhere,
// bit for bit.
#include <map>
#include <numeric>

#include "base/philox.h"
#include "kernels/testing/arrays.h"
#include "kernels/testing/device.h"

namespace fettle::kernels::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Indices = std::vector<std::int64_t>;

struct Gathered {
  Floats x;
  std::vector<std::int32_t> labels;
  bool operator==(const Gathered&) const = default;
};

// A data set of images in a backend's memory.
template <class Pixel>
struct Images {
  Images(Backend& backend, ImageShape shape, const std::vector<Pixel>& values,
         const std::vector<std::int32_t>& all_labels)
      : pixels(on_device(backend, values)), labels(on_device(backend, all_labels)) {
    samples = {sizeof(Pixel) == 1 ? PixelType::kByte : PixelType::kFloat, shape, pixels.data(),
               labels.data()};
  }
  DeviceArray<Pixel> pixels;
  DeviceArray<std::int32_t> labels;
  Samples samples;
};

Gathered gather(Backend& backend, const Samples& samples, const ImageLook& look,
                const Indices& indices, std::uint32_t epoch, DataType type = DataType::kFloat32) {
  const std::int64_t count = std::ssize(indices);
  const auto gather = must(backend.gather(samples, look, {count, type}));
  const auto on = on_device(backend, indices);
  const auto when = on_device(backend, epoch);
  Array x(type, count * samples.shape.size());
  auto labels = on_device(backend, std::vector<std::int32_t>(indices.size(), -1));
  gather->run(count, on.data(), when.data(), x.data(), labels.data());
  backend.wait();
  return {x.floats(), labels.download()};
}

Bytes random_bytes(std::int64_t count) {
  fettle::Random random(1);
  Bytes bytes(static_cast<std::size_t>(count));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.bits32());
  return bytes;
}

class Gather : public ::testing::TestWithParam<std::string> {
 protected:
  Backend* const tested_ = backend(GetParam());
};

TEST_P(Gather, ShowsBytesNormalised) {
  const Images<std::uint8_t> images(*tested_, {1, 2, 1}, {0, 255, 51, 102, 255, 0}, {7, 8, 9});
  const Gathered found =
      gather(*tested_, images.samples, {.mean = 0.5, .deviation = 0.25}, {2, 0}, 0);
  EXPECT_THAT(found.x, ::testing::ElementsAre(2, -2, -2, 2));
  EXPECT_THAT(found.labels, ::testing::ElementsAre(9, 7));
}

TEST_P(Gather, ShowsFloatsNormalised) {
  const Images<float> images(*tested_, {1, 2, 1}, {1, 2, 3, 4}, {7, 8});
  const Gathered found = gather(*tested_, images.samples, {.mean = 2, .deviation = 4}, {1}, 0);
  EXPECT_THAT(found.x, ::testing::ElementsAre(0.25, 0.5));
  EXPECT_THAT(found.labels, ::testing::ElementsAre(8));
}

TEST_P(Gather, GathersTokensAndTheirSuccessors) {
  std::vector<std::uint16_t> text(10'001);
  std::iota(text.begin(), text.end(), std::uint16_t{0});
  const auto tokens = on_device(*tested_, text);
  const Samples samples{PixelType::kToken, {5000, 1, 1}, tokens.data()};
  const auto gather = must(tested_->gather(samples, {}, {2}));
  auto x = on_device(*tested_, std::vector<std::int32_t>(10'000));
  auto labels = on_device(*tested_, std::vector<std::int32_t>(10'000));
  const auto indices = on_device(*tested_, Indices{1, 0});
  const auto epoch = on_device(*tested_, std::uint32_t{0});
  gather->run(2, indices.data(), epoch.data(), x.data(), labels.data());
  std::vector<std::int32_t> expected(10'000);
  std::iota(expected.begin(), expected.begin() + 5000, 5000);
  std::iota(expected.begin() + 5000, expected.end(), 0);
  EXPECT_EQ(x.download(), expected);
  for (std::int32_t& token : expected) ++token;
  EXPECT_EQ(labels.download(), expected);
}

TEST_P(Gather, MirrorsHalfOfTheImages) {
  const Images<float> images(*tested_, {1, 3, 1}, {1, 2, 3}, {0});
  int mirrored = 0;
  for (std::uint32_t epoch = 0; epoch < 100; ++epoch) {
    const Floats shown = gather(*tested_, images.samples, {.flip = true}, {0}, epoch).x;
    if (shown == Floats{3, 2, 1}) {
      ++mirrored;
    } else {
      ASSERT_EQ(shown, (Floats{1, 2, 3}));
    }
  }
  EXPECT_GT(mirrored, 30);
  EXPECT_LT(mirrored, 70);
}

TEST_P(Gather, ShiftsImagesAndMovesBlackIn) {
  const Images<float> images(*tested_, {1, 3, 1}, {1, 2, 3}, {0});
  std::map<Floats, int> seen;
  for (std::uint32_t epoch = 0; epoch < 90; ++epoch) {
    ++seen[gather(*tested_, images.samples, {.mean = 1, .shift = 1}, {0}, epoch).x];
  }
  // A move up or down hides the only row.
  const std::map<Floats, int> expected = {
      {{0, 1, 2}, 0}, {{-1, 0, 1}, 0}, {{1, 2, -1}, 0}, {{-1, -1, -1}, 0}};
  ASSERT_EQ(seen.size(), expected.size());
  for (const auto& [shown, times] : seen) EXPECT_TRUE(expected.contains(shown));
}

TEST_P(Gather, ASampleLooksTheSameInEveryBatch) {
  const Images<std::uint8_t> images(*tested_, {4, 4, 3}, random_bytes(9 * 48),
                                    {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const ImageLook look{.flip = true, .shift = 2, .seed = 5};
  const Floats both = gather(*tested_, images.samples, look, {8, 3}, 2).x;
  const Floats alone = gather(*tested_, images.samples, look, {3}, 2).x;
  EXPECT_EQ(Floats(both.begin() + 48, both.end()), alone);
}

TEST_P(Gather, IsTheSameInEveryBackendBitForBit) {
  const auto reference = backend("reference");
  const std::vector<std::int32_t> labels = {3, 1, 4, 1, 5};
  const Indices indices = {4, 0, 0, 3, 1, 2};
  const ImageLook look{.mean = 0.31, .deviation = 0.27, .flip = true, .shift = 3, .seed = 99};
  for (const ImageShape shape : {ImageShape{28, 28, 1}, {5, 3, 3}, {70, 60, 3}, {1, 1, 1}}) {
    const Bytes bytes = random_bytes(5 * shape.size());
    const Floats floats = random_floats(5 * shape.size(), 2);
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      for (const std::uint32_t epoch : {0U, 7U}) {
        EXPECT_EQ(gather(*tested_, Images<std::uint8_t>(*tested_, shape, bytes, labels).samples,
                         look, indices, epoch, type),
                  gather(*reference, Images<std::uint8_t>(*reference, shape, bytes, labels).samples,
                         look, indices, epoch, type));
        EXPECT_EQ(gather(*tested_, Images<float>(*tested_, shape, floats, labels).samples, look,
                         indices, epoch, type),
                  gather(*reference, Images<float>(*reference, shape, floats, labels).samples, look,
                         indices, epoch, type));
      }
    }
  }
}

TEST_P(Gather, RefusesSamplesItCannotCount) {
  const Samples huge{PixelType::kByte, {1 << 14, 1 << 14, 8}};
  const auto gather = tested_->gather(huge, {}, {1});
  ASSERT_FALSE(gather.ok());
  EXPECT_THAT(gather.error().message, ::testing::HasSubstr("2147483648 elements"));
}

INSTANTIATE_TEST_SUITE_P(, Gather, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
