// A study that began with other defaults than today's continues with its own.
#include "cli/commands/adopt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "api/study/study_json.h"
#include "runtime/local/store/sqlite_store.h"

namespace fettle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AdoptTest : public testing::Test {
 protected:
  AdoptTest() {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    store_ = local::SqliteStore::open(directory_ + "/s.db", local::SqliteStore::Mode::kReadWrite)
                 .value();
  }
  ~AdoptTest() override { std::filesystem::remove_all(directory_); }

  // Returns today's file; `spec` holds more lines of it.
  static Json document(const std::string& spec) {
    return parse_json(R"({
      "apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": "s"},
      "spec": {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": [{"name": "x", "type": "Double", "min": 0, "max": 1}],
        "resource": {"min": 1, "max": 9}, )" +
                      spec + R"("trial": {"template": {"spec": {"containers": [
          {"name": "trainer", "image": "none", "command": ["/bin/true"]}]}}}}})")
        .value();
  }

  // Begins a study with a trial, as a version whose defaults `edit` sets.
  template <class Edit>
  void begin(const Json& file, const Edit& edit) {
    api::Study study = api::read_study(file).study;
    edit(study.spec);
    ASSERT_TRUE(store_->create_study(study).ok());
    api::Trial trial;
    trial.metadata.name = "s-0";
    trial.spec.study = "s";
    trial.spec.parameters = Json::object({{"x", 0.5}});
    ASSERT_TRUE(store_->create_trial(trial).ok());
  }

  Result<Adopted> adopt(const Json& file) {
    return adopt_study(*store_, api::read_study(file).study, file);
  }

  std::string directory_;
  std::unique_ptr<local::SqliteStore> store_;
};

TEST_F(AdoptTest, OmittedFieldsKeepTheirFirstValues) {
  const Json file = document(R"("earlyStopping": {"name": "asha"}, )");
  begin(file, [](api::StudySpec& spec) {
    spec.early_stopping->reduction_factor = 4;
    spec.objectives[0].take = api::Take::kBest;
    spec.resource.unit = "step";
  });
  const auto adopted = adopt(file);
  ASSERT_TRUE(adopted.ok()) << adopted.error().message;
  EXPECT_EQ(adopted->study.spec.early_stopping->reduction_factor, 4);
  EXPECT_EQ(adopted->study.spec.objectives[0].take, api::Take::kBest);
  EXPECT_EQ(adopted->study.spec.resource.unit, "step");
  EXPECT_THAT(adopted->kept,
              ElementsAre("spec.objectives[0].take: \"Best\"", "spec.resource.unit: \"step\"",
                          "spec.earlyStopping.reductionFactor: 4"));
  EXPECT_EQ(store_->get_study({"", "s"})->spec, adopted->study.spec);
}

TEST_F(AdoptTest, ANewValueIsAChange) {
  begin(document(R"("earlyStopping": {"name": "asha", "reductionFactor": 4}, )"), [](auto&) {});
  const auto adopted =
      adopt(document(R"("earlyStopping": {"name": "asha", "reductionFactor": 3}, )"));
  ASSERT_FALSE(adopted.ok());
  EXPECT_THAT(adopted.error().message,
              HasSubstr("spec.earlyStopping.reductionFactor: was 4, now 3"));
}

TEST_F(AdoptTest, ARemovedFieldIsAChange) {
  begin(document(R"("earlyStopping": {"name": "asha"}, )"), [](auto&) {});
  EXPECT_FALSE(adopt(document("")).ok());
}

TEST_F(AdoptTest, AllowedChangesTakeEffect) {
  begin(document(R"("budget": {"trials": 50}, )"), [](auto&) {});
  const auto adopted = adopt(document(""));
  ASSERT_TRUE(adopted.ok()) << adopted.error().message;
  EXPECT_EQ(adopted->study.spec.budget.trials, api::Budget().trials);
  EXPECT_THAT(adopted->kept, IsEmpty());
}

}  // namespace
}  // namespace fettle::cli
