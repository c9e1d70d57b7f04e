#include "trainer/data/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "trainer/data/batch_writer.h"
#include "trainer/data/training_data.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A file as numpy.save writes it: magic, version, length of the header, header, padded to 64 bytes.
std::string npy(const std::string& dictionary, const std::string& values, char major = 1) {
  std::string header = dictionary;
  const std::size_t start = major == 1 ? 10 : 12;
  while ((start + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = std::string("\x93NUMPY") + major + '\0';
  for (std::size_t i = 0; i < start - 8; ++i) {
    file += static_cast<char>(header.size() >> (8 * i) & 255);
  }
  return file + header + values;
}

std::string dictionary(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class NpyTest : public testing::Test {
 protected:
  Result<ImageSet> read(const std::string& images, const std::string& labels) {
    DataCache off("");
    EXPECT_TRUE(write_file(directory_.file("images.npy"), images).ok());
    EXPECT_TRUE(write_file(directory_.file("labels.npy"), labels).ok());
    return read_npy_image_set(directory_.file("images.npy"), directory_.file("labels.npy"), off);
  }
  // The error must name the file and the fault.
  void expect_error(const Result<ImageSet>& set, const std::string& file, const std::string& text) {
    ASSERT_FALSE(set.ok());
    EXPECT_THAT(set.error().message, HasSubstr(directory_.file(file)));
    EXPECT_THAT(set.error().message, HasSubstr(text));
  }

  TemporaryDirectory directory_;
  const std::string images_ = npy(dictionary("|u1", "(2, 2, 3)"), "abcdefghijkl");
  const std::string labels_ = npy(dictionary("|u1", "(2,)"), std::string("\4\1", 2));
  const std::string floats_ =
      npy(dictionary("<f4", "(2, 1, 1, 3)"), bytes_of<float>({1, 2, 3, -4, 0.5F, 6}));
};

TEST_F(NpyTest, ReadsBytes) {
  const auto set = read(images_, labels_);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->shape(), (kernels::ImageShape{2, 3, 1}));
  EXPECT_EQ(set->classes(), 5);
  EXPECT_EQ(set->image(1)[0], 'g');
  EXPECT_EQ(set->label(0), 4);
}

TEST_F(NpyTest, ReadsFloatsAndLongLabels) {
  const auto set =
      read(floats_, npy(dictionary("<i8", "(2,)"), bytes_of<std::int64_t>({300, 7}), 2));
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->shape(), (kernels::ImageShape{1, 1, 3}));
  EXPECT_EQ(set->classes(), 301);
  EXPECT_EQ(set->pixels<float>(1)[0], -4);
}

TEST_F(NpyTest, ATableIsOneRowASample) {
  const auto set = read(npy(dictionary("<f4", "(2, 2)"), bytes_of<float>({1, 2, 3, 4})), labels_);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->shape(), (kernels::ImageShape{1, 1, 2}));
}

// numpy pads headers so that values are aligned; other writers may not.
TEST_F(NpyTest, ReadsFloatsWhereverTheyStart) {
  std::string header = dictionary("<f4", "(2, 2)");
  header += header.size() % 2 == 0 ? "\n" : " \n";
  std::string file = std::string("\x93NUMPY\1\0", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  file += header;
  ASSERT_EQ(file.size() % 2, 1U);
  const auto set = read(file + bytes_of<float>({1, 2, 3, 4}), labels_);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->pixels<float>(1)[1], 4);
}

TEST_F(NpyTest, FloatsAreNormalisedAsTheyAre) {
  const auto set = read(floats_, labels_);
  const Indices both = {0, 1};
  const auto measured = measure_pixels(*set, both);
  EXPECT_NEAR(measured.mean, 8.5 / 6, 1e-12);
  EXPECT_NEAR(measured.std, std::sqrt(66.25 / 6 - 8.5 * 8.5 / 36), 1e-12);
  const BatchWriter writer({2, 4}, {}, kernels::DataType::kFloat32, 0);
  Batch batch = writer.make_batch(*set, 2);
  writer.write(*set, both, 0, batch);
  const auto* written = reinterpret_cast<const float*>(batch.pixels.data());
  EXPECT_THAT(std::vector<float>(written, written + 6),
              ElementsAre(-0.25F, 0, 0.25F, -1.5F, -0.375F, 1));
}

TEST_F(NpyTest, RefusesWhatIsNoNpyFile) {
  expect_error(read("PK\3\4 a zip file", labels_), "images.npy", "is no NPY file");
  expect_error(read(idx({2, 1, 1}, {1, 2}), labels_), "images.npy", "save it with numpy.save");
  expect_error(read(images_, ""), "labels.npy", "is empty");
  expect_error(read(npy("{}", "", 3), labels_), "images.npy", "has NPY version 3.0; expected 1.0");
  expect_error(read(npy("{'descr': '|u1'}", "abc"), labels_), "images.npy", "damaged NPY header");
  expect_error(read(npy(dictionary("|u1", "(2, x)"), "abc"), labels_), "images.npy", "damaged");
}

TEST_F(NpyTest, RefusesImagesWhoseChannelsComeFirst) {
  for (const std::int64_t channels : {1, 3, 4}) {
    const std::string sides = std::to_string(channels) + ", 8, 8";
    const std::string values(static_cast<std::size_t>(2 * channels * 64), 'a');
    expect_error(read(npy(dictionary("|u1", "(2, " + sides + ")"), values), labels_), "images.npy",
                 "has images of shape [n, " + sides + "], which looks like [n, channels, height");
    const std::string last = "(2, 8, 8, " + std::to_string(channels) + ")";
    EXPECT_TRUE(read(npy(dictionary("|u1", last), values), labels_).ok());
  }
  EXPECT_TRUE(read(npy(dictionary("|u1", "(2, 3, 8, 6)"), std::string(288, 'a')), labels_).ok())
      << "three rows of eight pixels with six channels";
}

TEST_F(NpyTest, BytesOfADamagedHeaderDoNotReachTheTerminal) {
  for (const std::string& header :
       {std::string("{'descr': '|u1\x1b]0;x\x07'}"), dictionary("\x1b[31m\xff", "(2, 2, 3)")}) {
    const auto refused = read(npy(header, "abc"), labels_);
    ASSERT_FALSE(refused.ok());
    for (const char c : refused.error().message) EXPECT_TRUE(c >= ' ' && c <= '~') << int{c};
  }
}

TEST_F(NpyTest, EveryCutIsNoticed) {
  for (std::size_t length = 1; length < images_.size(); ++length) {
    const auto set = read(images_.substr(0, length), labels_);
    ASSERT_FALSE(set.ok()) << length;
    const std::string expected = length < 6 ? "is no NPY file" : "is cut short";
    EXPECT_THAT(set.error().message, HasSubstr(expected)) << length;
  }
  expect_error(read(images_.substr(0, images_.size() - 1), labels_), "images.npy",
               "its shape [2, 2, 3] needs 12 bytes, it holds 11");
  expect_error(read(images_ + "x", labels_), "images.npy", "is too long");
}

TEST_F(NpyTest, RefusesOtherTypesOrdersAndShapes) {
  expect_error(read(npy(dictionary("<f8", "(1, 1)"), "12345678"), labels_), "images.npy",
               "numbers of type '<f8'; expected '|u1' (uint8), '<f4' (float32), '<u2'");
  expect_error(read(npy(dictionary(">f4", "(1, 1)"), "1234"), labels_), "images.npy", "'>f4'");
  expect_error(
      read(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", "abcd"), labels_),
      "images.npy", "is in Fortran order; expected C order");
  expect_error(read(labels_, labels_), "images.npy", "has shape [2]; expected images");
  expect_error(read(images_, images_), "labels.npy", "has shape [2, 2, 3]; expected labels");
  expect_error(read(images_, npy(dictionary("|u1", "(3,)"), "\1\2\3")), "labels.npy",
               "holds 3 labels");
  expect_error(read(images_, npy(dictionary("|u1", "(0,)"), "")), "labels.npy", "holds no labels");
  expect_error(read(npy(dictionary("|u1", "(99999999, 99999999)"), ""), labels_), "images.npy",
               "announces more than");
}

TEST_F(NpyTest, RefusesImpossibleValues) {
  expect_error(read(images_, npy(dictionary("<i8", "(2,)"), bytes_of<std::int64_t>({0, -3}))),
               "labels.npy", "has the label -3 at 1; expected 0 to");
  expect_error(read(npy(dictionary("<f4", "(2, 1)"), bytes_of<float>({1, NAN})), labels_),
               "images.npy", "has the value nan in image 1; expected finite numbers");
}

TEST_F(NpyTest, IsADataFormat) {
  ASSERT_TRUE(read(images_, labels_).ok());
  api::DataConfig config;
  config.format = "npy";
  config.train_images = directory_.file("images.npy");
  config.train_labels = directory_.file("labels.npy");
  config.validation_samples = 1;
  DataCache off("");
  const auto data = load_training_data(config, off);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->images.size(), 2);
  config.format = "idx";
  EXPECT_THAT(load_training_data(config, off).error().message, HasSubstr("expected an IDX file"));
}

}  // namespace
}  // namespace fettle::trainer
