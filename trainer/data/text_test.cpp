#include "trainer/data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/data/batch_writer.h"
#include "trainer/data/training_data.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TextTest : public testing::Test {
 protected:
  // Writes `content` as the training text and loads it.
  Result<TrainingData> load(const std::string& format, const std::string& content) {
    config_.format = format;
    config_.train_text = directory_.file("text");
    EXPECT_TRUE(write_file(config_.train_text, content).ok());
    DataCache off("");
    return load_training_data(config_, off);
  }

  void expect_error(const std::string& format, const std::string& content,
                    const std::string& message) {
    const auto data = load(format, content);
    ASSERT_FALSE(data.ok()) << message;
    EXPECT_EQ(data.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(data.error().message, HasSubstr(directory_.file("text")));
    EXPECT_THAT(data.error().message, HasSubstr(message));
  }

  TemporaryDirectory directory_;
  api::DataConfig config_ = [] {
    api::DataConfig config;
    config.context = 2;
    return config;
  }();
};

Batch batch_of(const TrainingData& data, const Indices& samples, kernels::DataType type) {
  const BatchWriter writer({}, {}, type, 0);
  Batch batch = writer.make_batch(data.images, std::ssize(samples));
  writer.write(data.images, samples, 0, batch);
  return batch;
}

std::vector<std::int32_t> tokens_of(const Batch& batch) {
  const auto* first = reinterpret_cast<const std::int32_t*>(batch.pixels.data());
  return {first, first + batch.labels.size()};
}

// A list of numbers as numpy.save writes it.
template <class T>
std::string npy(const std::string& type, const std::vector<T>& values) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" +
                       std::to_string(values.size()) + ",), }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00v\x00", 10) + header +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string raw(const std::vector<std::uint16_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::uint16_t)};
}

TEST_F(TextTest, TokensAreTheBytesThatOccurInTheirOrder) {
  config_.validation_samples = 1;
  const auto data = load("text", "banana-land");
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->format().vocabulary, "6 characters 2d6162646c6e");  // - a b d l n
  EXPECT_EQ(data->format().classes, 6);
  EXPECT_TRUE(data->format().tokens);
  for (const auto type : {kernels::DataType::kFloat32, kernels::DataType::kBFloat16}) {
    const Batch batch = batch_of(*data, {2, 0}, type);
    EXPECT_THAT(tokens_of(batch), ElementsAre(5, 1, 2, 1));
    EXPECT_THAT(batch.labels, ElementsAre(1, 0, 1, 5));  // each is the next token
  }
}

TEST_F(TextTest, TheLastPiecesAreHeldOut) {
  config_.validation_samples = 2;
  const auto data = load("text", "abcdefghijk");
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_THAT(data->split.train, ElementsAre(0, 1, 2));
  EXPECT_THAT(data->split.validation, ElementsAre(3, 4));
  config_.train_samples = 1;
  EXPECT_THAT(load("text", "abcdefghijk")->split.train, ElementsAre(0));
}

TEST_F(TextTest, ReadsIdsAsNanoGptAndNumpyWriteThem) {
  config_.validation_samples = 1;
  for (const std::string& content :
       {raw({4, 300, 2, 0, 1}), npy<std::uint16_t>("<u2", {4, 300, 2, 0, 1}),
        npy<std::int32_t>("<i4", {4, 300, 2, 0, 1}), npy<std::int64_t>("<i8", {4, 300, 2, 0, 1})}) {
    const auto data = load("tokens", content);
    ASSERT_TRUE(data.ok()) << data.error().message;
    EXPECT_EQ(data->format().vocabulary, "301 tokens");
    EXPECT_THAT(tokens_of(batch_of(*data, {0, 1}, kernels::DataType::kFloat32)),
                ElementsAre(4, 300, 2, 0));
  }
  config_.vocabulary = 50304;
  EXPECT_EQ(load("tokens", raw({4, 300, 2, 0, 1}))->format().classes, 50304);
}

TEST_F(TextTest, TestTextHasTheTrainingTextsTokens) {
  config_.validation_samples = 1;
  config_.test_text = directory_.file("test");
  ASSERT_TRUE(write_file(config_.test_text, "cab").ok());
  const auto data = load("text", "abcde");
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->test->classes(), 5);
  EXPECT_EQ(data->test->pixels<std::uint16_t>(0)[0], 2);
  ASSERT_TRUE(write_file(config_.test_text, "caX").ok());
  EXPECT_THAT(load("text", "abcde").error().message,
              HasSubstr("test has the byte 88 at 2, which does not occur in the training text"));
}

TEST_F(TextTest, RefusesWhatIsNoText) {
  expect_error("text", "", "is empty");
  expect_error("text", "ab", "holds 2 tokens; a sample of data.context 2 needs 3");
  expect_error("text", "abc", "holds 1 samples, too few for");
  expect_error("tokens", "abc", "is cut short: it holds 3 bytes; expected token ids of two bytes");
  expect_error("tokens", npy<float>("<f4", {1, 2}), "has no list of whole numbers");
  expect_error("tokens", npy<std::int32_t>("<i4", {1, -2}), "has the token -2 at 1; expected 0 to");
  const std::string whole = npy<std::int32_t>("<i4", {1, 2, 3});
  expect_error("tokens", whole.substr(0, whole.size() - 2), "is cut short");
  config_.vocabulary = 65;
  expect_error("tokens", raw({1, 2, 70, 3, 4}),
               "has the token 70 at 2; expected 0 to 64, since the vocabulary is 65");
}

}  // namespace
}  // namespace fettle::trainer
