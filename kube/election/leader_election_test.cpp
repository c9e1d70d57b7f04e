// Leader election as a conversation between candidates and one Lease, on a clock of the test.
#include "kube/election/leader_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Ge;
using testing::Le;

using Phase = LeaseState::Phase;

const Error kDown{ErrorCode::kUnavailable, "down"};
const Error kStale{ErrorCode::kConflict, "stale"};
const Error kNone{ErrorCode::kNotFound, "none"};

// One candidate, and its last output.
struct Candidate {
  LeaseTerms terms;
  LeaseState state;
  LeaseOutput output = WaitForLease{milliseconds(0)};

  explicit Candidate(const std::string& identity) {
    terms.key = {"system", "fettle-operator"};
    terms.identity = identity;
  }
  void give(const LeaseInput& input, milliseconds now) {
    LeaseStep done = step(terms, std::move(state), input, {now, 1767225600000 + now.count()});
    state = std::move(done.state);
    output = std::move(done.output);
  }
  bool may_write_at(milliseconds now) const { return may_write(terms, state, now); }
  template <class Output>
  bool wants() const {
    return std::holds_alternative<Output>(output);
  }
  milliseconds wait() const { return std::get<WaitForLease>(output).time; }
  Json written() const {
    if (wants<CreateLease>()) return std::get<CreateLease>(output).lease;
    return std::get<UpdateLease>(output).lease;
  }
};

// The Lease as the API server keeps it.
struct Server {
  Json lease;
  int version = 0;

  Result<Json> read() const {
    if (lease.is_null()) return kNone;
    return lease;
  }
  Result<Json> write(Json wanted) {
    const std::string given = text_at(wanted, {"metadata", "resourceVersion"});
    if (version > 0 && given != std::to_string(version)) return kStale;
    wanted.find("metadata")->set("resourceVersion", std::to_string(++version));
    lease = std::move(wanted);
    return lease;
  }
  std::string holder() const { return text_at(lease, {"spec", "holderIdentity"}); }
};

// Runs `candidate` until it waits (or is over).
void turn(Candidate& candidate, Server& server, milliseconds now) {
  candidate.give(LeaseDue{}, now);
  while (!candidate.wants<WaitForLease>() && !candidate.wants<LeaseOver>()) {
    if (candidate.wants<ReadLease>()) {
      candidate.give(LeaseRead{server.read()}, now);
    } else {
      candidate.give(LeaseWritten{server.write(candidate.written())}, now);
    }
  }
}

TEST(LeaderElection, TheFirstCandidateCreatesTheLeaseAndRenewsIt) {
  Candidate a("a");
  Server server;
  turn(a, server, seconds(1));
  EXPECT_EQ(a.state.phase, Phase::kLeader);
  EXPECT_EQ(a.wait(), seconds(2));
  EXPECT_EQ(server.holder(), "a");
  EXPECT_EQ(integer_at(server.lease, {"spec", "leaseDurationSeconds"}), 15);
  EXPECT_EQ(text_at(server.lease, {"spec", "renewTime"}), "2026-01-01T00:00:01.000000Z");
  turn(a, server, seconds(3));
  EXPECT_EQ(text_at(server.lease, {"spec", "renewTime"}), "2026-01-01T00:00:03.000000Z");
  EXPECT_EQ(text_at(server.lease, {"spec", "acquireTime"}), "2026-01-01T00:00:01.000000Z");
  EXPECT_EQ(integer_at(server.lease, {"spec", "leaseTransitions"}), 0);
}

TEST(LeaderElection, ACandidateTakesOverAfterAWholeTermWithoutAChange) {
  Candidate a("a");
  Candidate b("b");
  Server server;
  turn(a, server, seconds(0));
  turn(b, server, seconds(100));  // however old the record claims to be
  EXPECT_EQ(b.state.phase, Phase::kCandidate);
  EXPECT_THAT(b.wait(), AllOf(Ge(seconds(2)), Le(milliseconds(4400))));
  turn(a, server, seconds(110));  // too late for a: it has given up
  EXPECT_EQ(a.state.phase, Phase::kLost);
  turn(b, server, milliseconds(114'999));
  EXPECT_EQ(b.state.phase, Phase::kCandidate);
  turn(b, server, seconds(115));
  EXPECT_EQ(b.state.phase, Phase::kLeader);
  EXPECT_EQ(server.holder(), "b");
  EXPECT_EQ(integer_at(server.lease, {"spec", "leaseTransitions"}), 1);
}

TEST(LeaderElection, ALeaderThatRenewsKeepsOthersWaiting) {
  Candidate a("a");
  Candidate b("b");
  Server server;
  for (int t = 0; t < 120; t += 2) {
    turn(a, server, seconds(t));
    turn(b, server, seconds(t));
    ASSERT_EQ(b.state.phase, Phase::kCandidate) << t;
  }
  EXPECT_EQ(a.state.phase, Phase::kLeader);
}

TEST(LeaderElection, AReleasedLeaseIsTakenAtOnce) {
  Candidate a("a");
  Candidate b("b");
  Server server;
  turn(a, server, seconds(0));
  turn(b, server, seconds(1));
  ASSERT_TRUE(server.write(released_lease(a.state, {seconds(2), 0})).ok());
  turn(b, server, seconds(3));
  EXPECT_EQ(b.state.phase, Phase::kLeader);
}

TEST(LeaderElection, AnswersThatAreLostEndTheTermBeforeOthersCanBegin) {
  Candidate a("a");
  Server server;
  turn(a, server, seconds(0));
  EXPECT_TRUE(a.may_write_at(milliseconds(9'999)));
  EXPECT_FALSE(a.may_write_at(seconds(10)));
  for (int t = 2; t < 10; t += 2) {
    a.give(LeaseDue{}, seconds(t));
    ASSERT_TRUE(a.wants<UpdateLease>()) << t;
    a.give(LeaseWritten{kDown}, milliseconds(t * 1000 + 500));
    EXPECT_EQ(a.state.phase, Phase::kLeader) << t;
  }
  EXPECT_EQ(a.wait(), milliseconds(1'500)) << "no longer than the deadline";
  a.give(LeaseDue{}, seconds(10));
  EXPECT_TRUE(a.wants<LeaseOver>());
  EXPECT_EQ(a.state.phase, Phase::kLost);
}

TEST(LeaderElection, TheTermCountsFromWhenTheWriteWasSent) {
  Candidate a("a");
  Server server;
  a.give(LeaseDue{}, seconds(0));
  a.give(LeaseRead{kNone}, seconds(1));
  a.give(LeaseWritten{server.write(a.written())}, seconds(8));
  EXPECT_EQ(a.state.phase, Phase::kLeader);
  EXPECT_TRUE(a.may_write_at(milliseconds(10'999)));
  EXPECT_FALSE(a.may_write_at(seconds(11)));
}

TEST(LeaderElection, AWriteWhoseAnswerWasLostIsRecognised) {
  Candidate a("a");
  Server server;
  turn(a, server, seconds(0));
  a.give(LeaseDue{}, seconds(2));
  (void)server.write(a.written());  // carried out ...
  a.give(LeaseWritten{kDown}, seconds(3));
  turn(a, server, seconds(5));  // ... so this one is stale, and it reads
  EXPECT_EQ(a.state.phase, Phase::kLeader);
  EXPECT_TRUE(a.may_write_at(seconds(14)));
}

TEST(LeaderElection, ALeaderThatSeesAnotherHolderIsLost) {
  Candidate a("a");
  Server server;
  turn(a, server, seconds(0));
  Json other = server.lease;
  other.find("spec")->set("holderIdentity", "b");
  (void)server.write(other);
  turn(a, server, seconds(2));
  EXPECT_EQ(a.state.phase, Phase::kLost);
  EXPECT_FALSE(a.may_write_at(seconds(2)));
}

TEST(LeaderElection, OnlyOneOfTwoCandidatesTakesOver) {
  Candidate a("a");
  Candidate b("b");
  Server server;
  for (Candidate* candidate : {&a, &b}) {
    candidate->give(LeaseDue{}, seconds(0));
    candidate->give(LeaseRead{kNone}, seconds(0));
    ASSERT_TRUE(candidate->wants<CreateLease>());
  }
  a.give(LeaseWritten{server.write(a.written())}, seconds(0));
  b.give(LeaseWritten{Error{ErrorCode::kAlreadyExists, "there"}}, seconds(0));
  EXPECT_EQ(a.state.phase, Phase::kLeader);
  EXPECT_EQ(b.state.phase, Phase::kCandidate);
  EXPECT_TRUE(b.wants<WaitForLease>());
}

TEST(LeaderElection, ARestartedHolderGoesOnAtOnce) {
  Candidate a("a");
  Server server;
  turn(a, server, seconds(0));
  Candidate again("a");
  turn(again, server, seconds(1));
  EXPECT_EQ(again.state.phase, Phase::kLeader);
}

TEST(LeaderElection, ACandidateOutlivesAServerThatIsDown) {
  Candidate a("a");
  a.give(LeaseDue{}, seconds(0));
  a.give(LeaseRead{kDown}, seconds(0));
  EXPECT_THAT(a.wait(), AllOf(Ge(seconds(2)), Le(milliseconds(4400))));
  EXPECT_EQ(a.state.phase, Phase::kCandidate);
}

}  // namespace
}  // namespace fettle::kube
