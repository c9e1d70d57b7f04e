// Logs stay bounded and keep their beginning and end.
#include "runtime/local/log/trial_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace fettle::local {
namespace {

class TrialLogTest : public testing::Test {
 protected:
  ~TrialLogTest() override { (void)::remove(path_.c_str()); }
  const std::string path_ =
      testing::TempDir() + "fettle_trial_log_test_" + std::to_string(::getpid());
};

// Numbered lines of 16 bytes.
std::string numbered(std::int64_t from, std::int64_t to) {
  std::string out;
  for (std::int64_t i = from; i < to; ++i) {
    const std::string number = std::to_string(i);
    out += "line " + std::string(10 - number.size(), '0') + number + "\n";
  }
  return out;
}

TEST_F(TrialLogTest, SmallLogsAreWhole) {
  TrialLog log(path_);
  log.append("a\nb\n");
  log.append("c");
  log.finish();
  EXPECT_EQ(read_file(path_).value(), "a\nb\nc");
  EXPECT_EQ(log.last_lines(2), "b\nc");
  EXPECT_EQ(log.last_lines(9), "a\nb\nc");
}

TEST_F(TrialLogTest, TheMiddleOfLargeOnesIsLeftOut) {
  constexpr std::int64_t kLine = 16;
  constexpr std::int64_t kLines = 3'000'000;
  // Pieces of any size give the same file.
  for (const std::int64_t step : {std::int64_t{1000}, std::int64_t{100'003}}) {
    TrialLog log(path_);
    for (std::int64_t i = 0; i < kLines; i += step) {
      log.append(numbered(i, std::min(i + step, kLines)));
    }
    log.finish();
    const std::int64_t kept = TrialLog::kHeadBytes + std::int64_t{TrialLog::kTailBytes};
    const std::string expected =
        numbered(0, TrialLog::kHeadBytes / kLine) +
        "\n[fettle: " + std::to_string(kLines * kLine - kept) + " of " +
        std::to_string(kLines * kLine) + " bytes are left out here]\n" +
        numbered(kLines - std::int64_t{TrialLog::kTailBytes} / kLine, kLines);
    EXPECT_TRUE(read_file(path_).value() == expected) << "pieces of " << step;
    EXPECT_EQ(log.last_lines(1), "line 0002999999");
  }
}

TEST_F(TrialLogTest, JustOverTheHeadNothingIsLeftOut) {
  const std::string text = numbered(0, (TrialLog::kHeadBytes + 1600) / 16);
  TrialLog log(path_);
  log.append(text);
  log.finish();
  EXPECT_TRUE(read_file(path_).value() == text);
}

TEST_F(TrialLogTest, AFullDiskIsRememberedAndHarmless) {
  TrialLog log("/dev/full");
  log.append("lost\n");
  log.append("lost too\n");
  log.finish();
  EXPECT_EQ(log.error(), "the log is not complete: No space left on device");
  EXPECT_EQ(log.last_lines(1), "lost too");
}

// Any user who may write to the directory could make such a link.
TEST_F(TrialLogTest, ALinkInItsPlaceIsNotFollowed) {
  const std::string target = path_ + ".target";
  ASSERT_TRUE(write_file(target, "precious").ok());
  ASSERT_EQ(::symlink(target.c_str(), path_.c_str()), 0);
  TrialLog log(path_);
  log.append("lost\n");
  log.finish();
  EXPECT_EQ(log.error(), "cannot open " + path_ + ": it is a link");
  EXPECT_EQ(read_file(target).value(), "precious");
  (void)::remove(target.c_str());
}

TEST_F(TrialLogTest, MessagesAreAlwaysPrintable) {
  const struct {
    std::string text;
    const char* expected;
  } cases[] = {
      {"plain\ttext\r\n", "plain text\n"},
      {"Übung 訓練 🙂", "Übung 訓練 🙂"},
      {std::string("a\0b\x1b[31m", 8), "a�b�[31m"},
      {"\xff\xfe\xfd!", "�!"},
      {"\xc0\xaf\xed\xa0\x80", "�"},
      {"cut \xe8\xa8", "cut �"},
  };
  for (const auto& c : cases) EXPECT_EQ(printable(c.text), c.expected);
}

}  // namespace
}  // namespace fettle::local
