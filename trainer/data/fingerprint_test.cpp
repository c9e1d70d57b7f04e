#include "trainer/data/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

TEST(ContentHash, EveryBitAndTheLengthCount) {
  for (const std::size_t size : {0U, 1U, 31U, 32U, 33U, 95U}) {
    std::vector<std::uint8_t> bytes(size);
    const std::uint64_t zeros = content_hash(bytes);
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] = static_cast<std::uint8_t>(1 << bit % 8);
      EXPECT_NE(content_hash(bytes), zeros) << size << " bytes, bit " << bit;
      bytes[bit / 8] = 0;
    }
    bytes.push_back(0);
    EXPECT_NE(content_hash(bytes), zeros) << size;
  }
}

TEST(ContentHash, TheOrderCounts) {
  std::vector<std::uint8_t> bytes(96);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  const std::uint64_t before = content_hash(bytes);
  for (const std::size_t distance : {1U, 8U, 32U}) {
    std::swap(bytes[3], bytes[3 + distance]);
    EXPECT_NE(content_hash(bytes), before) << distance;
    std::swap(bytes[3], bytes[3 + distance]);
  }
}

DataFingerprint of(const ImageSet& images, const ImageSet* test = nullptr) {
  return fingerprint_of(images, {0.25, 0.5}, test);
}

TEST(DataFingerprint, ComesBackAsItWas) {
  const ImageSet images = SyntheticImages(40).set();
  const DataFingerprint fingerprint = of(images, &images);
  const DataFingerprint back = read_fingerprint(*parse_json(to_json(fingerprint).dump()));
  EXPECT_EQ(back, fingerprint);
  EXPECT_EQ(back.digest(), fingerprint.digest());
  EXPECT_FALSE(read_fingerprint(Json("garbage")).is_known());
  EXPECT_FALSE(read_fingerprint(Json()).is_known());
}

TEST(DataFingerprint, SaysWhatDiffers) {
  const SyntheticImages made(40);
  const Json here = of(made.set()).train;
  EXPECT_EQ(difference_of_sets(here, here), "");
  EXPECT_EQ(difference_of_sets(Json(), here), "") << "not known";
  EXPECT_EQ(difference_of_sets(of(SyntheticImages(41).set()).train, here),
            "samples: 41 there, 40 here");

  SyntheticImages changed = made;
  changed.pixels[17] ^= 1;
  EXPECT_THAT(difference_of_sets(of(changed.set()).train, here), HasSubstr("as many samples, but"));
  changed = made;
  changed.labels[5] ^= 1;
  EXPECT_THAT(difference_of_sets(of(changed.set()).train, here), HasSubstr("with other labels"));

  const ImageSet tall({16, 4, 1}, Bytes::copy_of(made.pixels), Bytes::copy_of(made.labels));
  EXPECT_EQ(difference_of_sets(of(tall).train, here), "shape: 16×4×1 there, 8×8×1 here");
}

TEST(DataFingerprint, OfATextIsThatOfItsTokens) {
  const Json here = of(synthetic_text(10, 8, 40)).train;
  EXPECT_EQ(difference_of_sets(here, of(synthetic_text(10, 8, 40)).train), "");
  EXPECT_NE(difference_of_sets(here, of(synthetic_text(11, 8, 40)).train), "");
  EXPECT_NE(difference_of_sets(here, of(synthetic_text(10, 8, 41)).train), "");
}

}  // namespace
}  // namespace fettle::trainer
