// Bytes as the Python package tensorboard writes and reads them (its RecordWriter around an Event
// with wall_time 1.5, step 300 and two simple values).
#include "trainer/reporter/tensorboard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"

namespace fettle::trainer {
namespace {

namespace fs = std::filesystem;

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    out += kDigits[static_cast<unsigned char>(byte) >> 4];
    out += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return out;
}

const Metrics kMetrics = {{"loss", 0.25}, {"accuracy", -2}};

TEST(TensorBoard, AnEventIsWhatProtobufMakesOfIt) {
  EXPECT_EQ(hex(scalar_event(300, kMetrics, 1.5)),
            "09000000000000f83f10ac022a1e0a0b0a046c6f7373150000803e0a0f0a08616363757261637915000000"
            "c0");
}

TEST(TensorBoard, ARecordHasItsLengthAndBothChecksums) {
  EXPECT_EQ(hex(record_of(scalar_event(300, kMetrics, 1.5))),
            "2c00000000000000f4aecc4509000000000000f83f10ac022a1e0a0b0a046c6f7373150000803e0a0f0a08"
            "616363757261637915000000c0945fca71");
}

TEST(TensorBoard, WhatIsNotFiniteIsWrittenAsItIs) {
  const std::string event = hex(scalar_event(1, {{"loss", INFINITY}}, 0));
  EXPECT_EQ(event.substr(event.size() - 8), "0000807f");
}

class TensorBoardFiles : public ::testing::Test {
 protected:
  TensorBoardFiles() : directory_(::testing::TempDir() + "/tensorboard_test") {
    fs::remove_all(directory_);
  }
  ~TensorBoardFiles() override { fs::remove_all(directory_); }
  const std::string directory_;
};

TEST_F(TensorBoardFiles, EachEventIsThereAtOnce) {
  Result<TensorBoardFile> file = TensorBoardFile::create(directory_ + "/study/trial-3", 1.7e9);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const fs::directory_entry found = *fs::directory_iterator(directory_ + "/study/trial-3");
  EXPECT_EQ(found.path().filename().string().find("events.out.tfevents.1700000000."), 0U);
  const auto begun = read_file(found.path().string());
  ASSERT_TRUE(begun.ok());
  EXPECT_NE(begun->find("brain.Event:2"), std::string::npos);
  ASSERT_TRUE(file->add(300, kMetrics, 1.5).ok());
  EXPECT_EQ(*read_file(found.path().string()),
            *begun + record_of(scalar_event(300, kMetrics, 1.5)));
}

TEST_F(TensorBoardFiles, APlaceThatCannotBeIsNamed) {
  ASSERT_TRUE(write_file(directory_, "a file").ok());
  const auto file = TensorBoardFile::create(directory_ + "/trial", 0);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find(directory_), std::string::npos) << file.error().message;
}

}  // namespace
}  // namespace fettle::trainer
