// Objects that this version of Fettle did not write, against an API server in memory: fields it
// does not know, documents it cannot read, trials of other Studies and of none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/names.h"
#include "kube/objects/json_path.h"
#include "runtime/kubernetes/testing/fake_cluster.h"

namespace fettle::kubernetes {
namespace {

using kube::text_at;
using testing::HasSubstr;

// The status of the condition; "" if it is absent.
std::string condition_of(const Json& object, const std::string& type) {
  for (const Json& one : kube::array_at(object, {"status", "conditions"})) {
    if (text_at(one, {"type"}) == type) return text_at(one, {"status"});
  }
  return "";
}

Json merge(const char* text) { return parse_json(text).value(); }

class ForeignObjects : public testing::Test {
 protected:
  ForeignObjects() {
    cluster_.script = [this](const std::string&) {
      PodScript pod;
      pod.stays = stays_;
      return pod;
    };
  }

  void change_study(const char* patch) {
    cluster_.server.merge(kube::kStudies, {"team", "digits"}, merge(patch));
  }
  void change_trial(const char* patch) {
    cluster_.server.merge(kube::kTrials, {"team", "digits-0"}, merge(patch));
  }
  bool run_until_running(std::size_t pods) {
    return cluster_.run_until([&] { return cluster_.count(kube::kPods) == pods; });
  }

  FakeCluster cluster_;
  bool stays_ = false;  // pods run for ever
};

TEST_F(ForeignObjects, FieldsOfANewerVersionAreKeptAndDisturbNothing) {
  stays_ = true;
  cluster_.apply(trainer_study(2));
  cluster_.start_operator();
  ASSERT_TRUE(run_until_running(2));
  change_study(R"({"spec": {"future": 7, "budget": {"future": 8}}, "status": {"future": 9}})");
  change_trial(R"({"spec": {"future": 7}, "status": {"future": 9}})");
  change_study(R"({"spec": {"suspend": true}})");
  ASSERT_TRUE(cluster_.run_until([&] {
    return text_at(cluster_.trial(0), {"status", "phase"}) == "Paused";
  })) << cluster_.trial(0).dump(2);
  stays_ = false;
  change_study(R"({"spec": {"suspend": false}})");
  ASSERT_TRUE(cluster_.run_until_ended()) << cluster_.study().dump(2);
  EXPECT_TRUE(cluster_.is_true("Succeeded"));
  const Json study = cluster_.study();
  EXPECT_EQ(kube::integer_at(study, {"spec", "future"}), 7);
  EXPECT_EQ(kube::integer_at(study, {"spec", "budget", "future"}), 8);
  EXPECT_EQ(kube::integer_at(study, {"status", "future"}), 9);
  EXPECT_EQ(kube::integer_at(cluster_.trial(0), {"spec", "future"}), 7);
  EXPECT_EQ(kube::integer_at(cluster_.trial(0), {"status", "future"}), 9);
  EXPECT_EQ(condition_of(study, "Readable"), "");
}

TEST_F(ForeignObjects, AStudyThatCannotBeReadForAWhileGoesOnAfterwards) {
  stays_ = true;
  cluster_.apply(trainer_study(3));
  cluster_.start_operator();
  ASSERT_TRUE(run_until_running(2));
  change_study(R"({"spec": {"algorithm": {"name": "clairvoyance"}}})");
  ASSERT_TRUE(cluster_.run_until([&] {
    return condition_of(cluster_.study(), "Readable") == "False";
  })) << cluster_.study().dump(2);
  cluster_.run_for(300);
  EXPECT_FALSE(cluster_.is_true("Failed"));
  EXPECT_EQ(cluster_.count(kube::kPods), 2u) << "what runs continues";
  change_study(R"({"spec": {"algorithm": {"name": "random"}}})");
  stays_ = false;
  ASSERT_TRUE(cluster_.run_until_ended()) << cluster_.study().dump(2);
  EXPECT_TRUE(cluster_.is_true("Succeeded"));
  EXPECT_EQ(condition_of(cluster_.study(), "Readable"), "");
  EXPECT_EQ(cluster_.count(kube::kTrials), 3u);
}

TEST_F(ForeignObjects, NothingIsBegunWhileATrialCannotBeRead) {
  stays_ = true;
  cluster_.apply(trainer_study(4));
  cluster_.start_operator();
  ASSERT_TRUE(run_until_running(2));
  change_trial(R"({"status": {"phase": "Dancing"}})");
  ASSERT_TRUE(cluster_.run_until([&] {
    return condition_of(cluster_.trial(0), "Readable") == "False" && cluster_.is_true("Blocked");
  })) << cluster_.study().dump(2);
  EXPECT_THAT(cluster_.message_of("Blocked"), HasSubstr("trial digits-0 cannot be read"));
  stays_ = false;
  cluster_.run_for(300);
  EXPECT_EQ(cluster_.count(kube::kTrials), 2u) << "it may be running";
  EXPECT_EQ(condition_of(cluster_.trial(0), "Failed"), "");
  change_trial(R"({"status": {"phase": "Running"}})");
  ASSERT_TRUE(cluster_.run_until_ended()) << cluster_.study().dump(2);
  EXPECT_TRUE(cluster_.is_true("Succeeded"));
  EXPECT_FALSE(cluster_.is_true("Blocked"));
  EXPECT_EQ(condition_of(cluster_.trial(0), "Readable"), "");
  EXPECT_EQ(cluster_.created["jobs/digits-0-r0"], 1);
}

TEST_F(ForeignObjects, AnEarlierVersionsFailedUnreadableIsNoEnd) {
  cluster_.apply(trainer_study(2));
  const Json study = cluster_.study();
  Json status = merge(R"({"status": {"conditions": [
      {"type": "Failed", "status": "True", "reason": "Unreadable", "message": "future"}]}})");
  status.find("status")->set("observedGeneration",
                             study.find("metadata")->find("generation")->as_integer());
  cluster_.server.merge(kube::kStudies, {"team", "digits"}, status);
  cluster_.start_operator();
  ASSERT_TRUE(cluster_.run_until([&] { return cluster_.is_true("Succeeded"); }));
  EXPECT_FALSE(cluster_.is_true("Failed"));
}

TEST_F(ForeignObjects, AStudyMadeAgainAtOnceWaitsUntilTheEarlierTrialsAreGone) {
  cluster_.apply(trainer_study(3));
  cluster_.start_operator();
  ASSERT_TRUE(cluster_.run_until_ended());
  cluster_.collects_garbage = false;
  cluster_.server.remove(kube::kStudies, {"team", "digits"});
  const std::string again = "00000000-0000-0000-0000-00000000beef";
  cluster_.apply(trainer_study(2), again);
  ASSERT_TRUE(cluster_.run_until([&] { return cluster_.is_true("Waiting"); }));
  EXPECT_THAT(cluster_.message_of("Waiting"), HasSubstr("3 trials of an earlier Study"));
  cluster_.run_for(300);
  EXPECT_EQ(cluster_.created["trials/digits-0"], 1);
  EXPECT_FALSE(cluster_.is_true("Succeeded")) << "nothing is adopted";
  cluster_.collects_garbage = true;
  ASSERT_TRUE(cluster_.run_until_ended()) << cluster_.study().dump(2);
  EXPECT_TRUE(cluster_.is_true("Succeeded"));
  EXPECT_FALSE(cluster_.is_true("Waiting"));
  EXPECT_EQ(cluster_.count(kube::kTrials), 2u);
  EXPECT_EQ(text_at(cluster_.trial(1), {"metadata", "labels", core::kStudyUidLabel}), again);
}

// The Trial has the labels, but no owner: any client that may write Trials can write labels.
TEST_F(ForeignObjects, ATrialMadeByHandIsIgnored) {
  cluster_.apply(trainer_study(2));
  Json trial = merge(R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial",
      "metadata": {"name": "digits-900000", "namespace": "team"},
      "spec": {"study": "digits", "index": 9000000000000, "workers": 1024}})");
  trial.find("metadata")
      ->set("labels", Json::object({{core::kStudyLabel, "digits"},
                                    {core::kStudyUidLabel, FakeCluster::kFirstUid}}));
  cluster_.server.set(kube::kTrials, trial);
  cluster_.start_operator();
  ASSERT_TRUE(cluster_.run_until_ended()) << cluster_.study().dump(2);
  EXPECT_TRUE(cluster_.is_true("Succeeded"));
  EXPECT_EQ(kube::integer_at(cluster_.study(), {"status", "trials", "created"}), 2);
  EXPECT_EQ(cluster_.created["jobs/digits-900000-r0"], 0);
}

TEST_F(ForeignObjects, TrialsThatAQuotaRefusesBlockTheStudyUntilThereIsRoom) {
  bool full = true;
  cluster_.refuses = [&](const kube::Admission& write) {
    return full && write.resource == "trials" && write.key.name != "digits-0";
  };
  cluster_.admit =
      Error{ErrorCode::kForbidden, "exceeded quota: few, requested: count/trials.fettle.dev=1"};
  cluster_.apply(trainer_study(3));
  cluster_.start_operator();
  ASSERT_TRUE(cluster_.run_until([&] { return cluster_.is_true("Blocked"); }));
  EXPECT_THAT(cluster_.message_of("Blocked"), HasSubstr("exceeded quota: few"));
  EXPECT_TRUE(cluster_.manager->has_event("Blocked", "exceeded quota: few"));
  EXPECT_TRUE(cluster_.run_until([&] {
    return kube::integer_at(cluster_.study(), {"status", "trials", "completed"}) == 1;
  })) << "what is known is told all the same";
  full = false;
  ASSERT_TRUE(cluster_.run_until_ended()) << cluster_.study().dump(2);
  EXPECT_TRUE(cluster_.is_true("Succeeded"));
  EXPECT_FALSE(cluster_.is_true("Blocked"));
}

}  // namespace
}  // namespace fettle::kubernetes
