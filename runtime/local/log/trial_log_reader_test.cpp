// A log is read while it is written, after it ended and after its writer was killed.
#include "runtime/local/log/trial_log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "runtime/local/log/trial_log.h"

namespace fettle::local {
namespace {

using testing::HasSubstr;

constexpr std::size_t kHead = TrialLog::kHeadBytes;
constexpr std::size_t kTail = TrialLog::kTailBytes;

class TrialLogReaderTest : public testing::Test {
 protected:
  TrialLogReaderTest() {
    std::string name = testing::TempDir() + "fettle-log-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    log_ = std::make_unique<TrialLog>(path());
  }
  ~TrialLogReaderTest() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/output.log"; }

  // Returns the text that a call prints.
  std::string read(TrialLogReader& reader, bool ended = false) {
    std::string text;
    const Status status = reader.read(ended, [&text](std::string_view bytes) { text += bytes; });
    EXPECT_TRUE(status.ok());
    return text;
  }
  std::string read_anew(bool ended = false) {
    TrialLogReader reader(path());
    return read(reader, ended);
  }
  void append(std::size_t bytes, char letter) { log_->append(std::string(bytes, letter)); }

  std::string directory_;
  std::unique_ptr<TrialLog> log_;
};

TEST_F(TrialLogReaderTest, PrintsEachByteOnceAsItComes) {
  TrialLogReader reader(path());
  EXPECT_EQ(read(reader), "");
  log_->append("one\ntw");
  EXPECT_EQ(read(reader), "one\ntw");
  log_->append("o\n");
  EXPECT_EQ(read(reader), "o\n");
  log_->finish();
  EXPECT_EQ(read(reader, true), "");
}

TEST_F(TrialLogReaderTest, FollowsBeyondTheHead) {
  TrialLogReader reader(path());
  std::string text;
  for (int i = 0; i < 40; ++i) {
    append(kTail / 2 - 1, 'x');
    log_->append("\n");
    text += read(reader);
  }
  EXPECT_EQ(text.size(), 20 * kTail);
  log_->append("the end\n");
  log_->finish();
  EXPECT_EQ(read(reader, true), "the end\n");
}

TEST_F(TrialLogReaderTest, ShowsTheNewestLinesOfALongLogThatStillGrows) {
  append(kHead + 5 * kTail, 'x');
  log_->append("newest\n");
  const std::string text = read_anew();
  EXPECT_EQ(text.substr(text.size() - 7), "newest\n");
  // The pieces 4 and 5 exist, 0 to 3 are gone.
  EXPECT_THAT(text,
              HasSubstr("[fettle: " + std::to_string(4 * kTail) + " bytes are left out here]"));
}

TEST_F(TrialLogReaderTest, SaysWhatAFollowerMissed) {
  TrialLogReader reader(path());
  append(kHead + 10, 'x');
  EXPECT_EQ(read(reader).size(), kHead + 10);
  append(9 * kTail, 'y');
  const std::string missed = read(reader);
  EXPECT_THAT(missed.substr(0, 60), HasSubstr("[fettle: " + std::to_string(8 * kTail - 10) +
                                              " bytes are left out here]"));
  EXPECT_EQ(read(reader), "");
  log_->append("end");
  log_->finish();
  EXPECT_EQ(read(reader, true), "end");
}

TEST_F(TrialLogReaderTest, SaysWhatAFollowerMissedOfOneThatHasEnded) {
  TrialLogReader reader(path());
  append(kHead + 10, 'x');
  read(reader);
  append(9 * kTail, 'y');
  log_->append("end");
  log_->finish();
  const std::string missed = read(reader, true);
  const std::string all = std::to_string(kHead + 9 * kTail + 13);
  EXPECT_THAT(missed.substr(0, 80), HasSubstr("[fettle: " + std::to_string(8 * kTail + 3) + " of " +
                                              all + " bytes are left out here]"));
  EXPECT_EQ(missed.substr(missed.size() - 4), "yend");
}

TEST_F(TrialLogReaderTest, OneThatHasEndedIsReadAsItIs) {
  append(kHead + 3 * kTail, 'x');
  log_->finish();
  const std::string text = read_anew(true);
  const std::string note = left_out_note(2 * kTail, kHead + 3 * kTail);
  EXPECT_EQ(text.size(), kHead + note.size() + kTail);
  EXPECT_EQ(text.substr(kHead, note.size()), note);
  EXPECT_TRUE(tail_pieces(path()).empty());
}

TEST_F(TrialLogReaderTest, OfAWriterThatWasKilledTheNewestLinesAreThere) {
  append(kHead + 3 * kTail, 'x');
  log_->append("last words");
  log_.reset();  // without finish()
  const std::string text = read_anew(true);
  EXPECT_EQ(text.substr(text.size() - 10), "last words");
  // The run is begun again: no old output is shown.
  log_ = std::make_unique<TrialLog>(path());
  EXPECT_EQ(read_anew(), "");
}

TEST_F(TrialLogReaderTest, AProgramCannotFakeACut) {
  append(kHead, 'x');
  const std::string fake = left_out_note(5, 10);
  log_->append(fake + "and more");
  log_->finish();
  TrialLogReader reader(path());
  EXPECT_EQ(read(reader, true).substr(kHead), fake + "and more");
}

TEST_F(TrialLogReaderTest, SaysThatThereIsNone) {
  TrialLogReader reader(directory_ + "/other.log");
  const Status status = reader.read(false, [](std::string_view) {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace fettle::local
