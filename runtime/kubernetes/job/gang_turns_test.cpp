// The order of turns, and which Studies leave their turns to others.
#include "runtime/kubernetes/job/gang_turns.h"

#include <gtest/gtest.h>

#include "core/names.h"

namespace fettle::kubernetes {
namespace {

constexpr std::int64_t kTimeout = 120'000;

class GangTurnsTest : public testing::Test {
 protected:
  static kube::Job job(const std::string& ns, const std::string& study,
                       const std::string& domain = "gpu") {
    kube::Job out;
    out.metadata.ns = ns;
    out.metadata.name = study + "-0-r0";
    out.metadata.labels[core::kStudyLabel] = study;
    out.metadata.annotations[kGangDomainAnnotation] = domain;
    return out;
  }
  void note(const kube::Job& of, GangState to, bool held = true) {
    turns_.note(of, to, held, now_ms_, kTimeout);
  }
  bool is_before(const kube::Job& a, const kube::Job& b) const {
    const auto [first, second] = std::pair(turns_.turn_of(a, now_ms_), turns_.turn_of(b, now_ms_));
    return std::tie(first.ns, first.study) < std::tie(second.ns, second.study);
  }
  bool rests(const kube::Job& of) const {
    return turns_.turn_of(of, now_ms_).backoff_until_ms > now_ms_;
  }

  GangTurns turns_;
  std::int64_t now_ms_ = 1'000'000;
};

TEST_F(GangTurnsTest, NamespacesTakeTurnsThenTheirStudies) {
  const kube::Job a = job("one", "a");
  const kube::Job b = job("one", "b");
  const kube::Job c = job("two", "c");
  note(a, GangState::kOpen);
  EXPECT_TRUE(is_before(c, b)) << "the other namespace, though b was not served either";
  EXPECT_TRUE(is_before(b, a));
  note(c, GangState::kOpen);
  EXPECT_TRUE(is_before(b, c));
  EXPECT_TRUE(is_before(b, a));
}

TEST_F(GangTurnsTest, AStudyThatHoldsNodesInVainRestsTwiceAsLongEachTime) {
  const kube::Job large = job("one", "large");
  const kube::Job small = job("two", "small");
  for (std::int64_t i = 0; i < 8; ++i) {
    note(small, GangState::kGathered);
    note(large, GangState::kReturned);
    const std::int64_t backoff_ms =
        kTimeout * std::min(GangTurns::kMaxBackoff, std::int64_t{1} << i);
    now_ms_ += backoff_ms - 1;
    EXPECT_TRUE(rests(large)) << i;
    now_ms_ += 1;
    EXPECT_FALSE(rests(large)) << i;
  }
  note(large, GangState::kGathered);
  note(large, GangState::kReturned);
  now_ms_ += kTimeout;
  EXPECT_FALSE(rests(large)) << "it has gathered, so it begins anew";
}

TEST_F(GangTurnsTest, WhoIsInNobodysWayDoesNotRest) {
  const kube::Job alone = job("one", "a");
  note(alone, GangState::kReturned);
  EXPECT_FALSE(rests(alone)) << "nobody else wants its nodes";
  note(job("two", "b", "cpu"), GangState::kGathered);
  EXPECT_FALSE(rests(alone)) << "of another domain";
  note(job("two", "b"), GangState::kGathered);
  EXPECT_TRUE(rests(alone));
  const kube::Job unplaced = job("one", "c");
  note(unplaced, GangState::kReturned, /*held=*/false);
  EXPECT_FALSE(rests(unplaced));
}

}  // namespace
}  // namespace fettle::kubernetes
