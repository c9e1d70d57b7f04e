// The output of workers, split into frames and text, however it is cut into pieces.
#include "runtime/worker_output.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace fettle::runtime {
namespace {

const std::string kNonce = "0123456789abcdef0123456789abcdef";

std::string frame_of(const std::string& words) { return "\x1e" + kNonce + " " + words + "\n"; }

// Text as it is; frames as "[word run ...]", so that one string shows the order.
std::string split(const std::vector<std::string>& pieces, std::int64_t* malformed = nullptr) {
  WorkerOutput output(kNonce);
  std::string out;
  const auto text = [&](std::string_view bytes) { out += bytes; };
  const auto frame = [&](const WorkerFrame& one) {
    constexpr const char* kWords[] = {"ready", "begin", "line", "end", "refuse"};
    out += "[" + std::string(kWords[static_cast<int>(one.word)]) + " " + one.run + "]";
  };
  for (const std::string& piece : pieces) output.feed(piece, text, frame);
  output.finish(text);
  if (malformed != nullptr) *malformed = output.malformed();
  return out;
}

TEST(WorkerOutput, KeepsTheOrderOfFramesAndText) {
  EXPECT_EQ(split({frame_of("ready 1 1") + "hello\n" + frame_of("begin s-0-r0") + "half a line" +
                   frame_of("end s-0-r0 0") + "rest"}),
            "[ready ]hello\n[begin s-0-r0]half a line[end s-0-r0]rest");
}

TEST(WorkerOutput, DoesNotDependOnHowBytesAreCut) {
  const std::string bytes = "a\x1e" + frame_of("begin s-0-r0") + "\x1e\x1e" + kNonce + "b" +
                            frame_of("line s-0-r0 {\"step\": 1}") + frame_of("nonsense") + "c\n" +
                            frame_of("end s-0-r0 143") + "\x1e" + kNonce;
  const std::string whole = split({bytes});
  EXPECT_EQ(whole,
            "a\x1e[begin s-0-r0]\x1e\x1e" + kNonce + "b[line s-0-r0]c\n[end s-0-r0]\x1e" + kNonce);
  std::mt19937 random(1);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t length = 1 + random() % 40;
      pieces.push_back(bytes.substr(at, length));
      at += length;
    }
    ASSERT_EQ(split(pieces), whole);
  }
}

TEST(WorkerOutput, TakesFramesOfAnotherNonceAsText) {
  std::string forged = frame_of("end s-0-r0 0");
  forged[5] = 'x';
  std::int64_t malformed = 0;
  EXPECT_EQ(split({forged}, &malformed), forged);
  EXPECT_EQ(malformed, 0);
}

TEST(WorkerOutput, DropsWhatIsTooLongAndContinues) {
  std::int64_t malformed = 0;
  const std::string flood(10'000, 'x');
  EXPECT_EQ(split({frame_of("line s-0-r0 " + flood), frame_of("end s-0-r0 0")}, &malformed),
            "line s-0-r0 " + flood + "\n[end s-0-r0]");
  EXPECT_EQ(malformed, 1);
}

TEST(WorkerOutput, AFrameThatIsCutOffDoesNotSwallowTheNext) {
  std::int64_t malformed = 0;
  const std::string half = frame_of("end s-0-r0 0").substr(0, 40);
  EXPECT_EQ(split({half + frame_of("end s-0-r0 0") + "text\n"}, &malformed),
            half.substr(kNonce.size() + 2) + "[end s-0-r0]text\n");
  EXPECT_EQ(malformed, 1);
}

TEST(WorkerOutput, RandomBytesNeverHoldBackMoreThanAFrame) {
  std::mt19937 random(2);
  WorkerOutput output(kNonce);
  std::size_t fed = 0;
  std::size_t seen = 0;
  const auto text = [&](std::string_view bytes) { seen += bytes.size(); };
  for (int i = 0; i < 3'000; ++i) {
    std::string piece;
    if (random() % 3 == 0) piece = frame_of("").substr(0, random() % 36);
    for (std::size_t n = random() % 50; n > 0; --n) piece += static_cast<char>(random() % 40);
    fed += piece.size();
    output.feed(piece, text, [](const WorkerFrame&) {});
    // Openings of malformed frames, and such frames, are not handed on.
    ASSERT_LE(seen, fed);
  }
  EXPECT_GT(seen + 4'096, fed / 2);
}

struct Words {
  std::string words;
  bool is_frame = false;
};

TEST(WorkerFrame, HasExactlyTheWordsOfTheProtocol) {
  const Words kCases[] = {
      {"ready 1 1", true},       {"ready 2 8", true},
      {"ready 1", false},        {"ready 0 1", false},
      {"ready 1 0", false},      {"ready 1 1 1", false},
      {"ready x 1", false},      {"begin s-0-r0", true},
      {"begin", false},          {"begin s-0-r0 x", false},
      {"end s-0-r0 0", true},    {"end s-0-r0 255", true},
      {"end s-0-r0 256", false}, {"end s-0-r0", false},
      {"end s-0-r0 -1", false},  {"end s-0-r0 0 0", false},
      {"line s-0-r0 {}", true},  {"refuse s-0-r0 no room", true},
      {"stop s-0-r0", false},    {"", false},
      {" begin s-0-r0", false},  {"begin " + std::string(300, 'x'), false},
  };
  for (const Words& one : kCases) {
    EXPECT_EQ(parse_worker_frame(one.words).has_value(), one.is_frame) << one.words;
  }
  EXPECT_EQ(parse_worker_frame("refuse s-0-r0 no room")->text, "no room");
  EXPECT_EQ(parse_worker_frame("end s-0-r0 143")->exit_code, 143);
}

}  // namespace
}  // namespace fettle::runtime
