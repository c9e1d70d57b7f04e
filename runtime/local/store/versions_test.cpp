// A store that another version of fettle has written to is read, and nothing in it is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <functional>
#include <string>

#include "runtime/local/testing/store_test.h"

namespace fettle::local {
namespace {

using testing::HasSubstr;

class VersionsTest : public StoreTest {
 protected:
  VersionsTest() {
    const auto store = open();
    EXPECT_TRUE(store->create_study(study()).ok());
    api::Trial created = store->create_trial(trial(0)).value();
    created.status.facts.push_back({1, api::FactKind::kRung, 3, {0.5}, false, 7});
    EXPECT_TRUE(store->update_trial_status(created).ok());
  }

  // The stored document of an object, as it is in the file.
  Json document(const char* kind) {
    Json found;
    visit(std::string("SELECT json FROM objects WHERE kind='") + kind + "'",
          [&](sqlite3_stmt* row) {
            found = parse_json(reinterpret_cast<const char*>(sqlite3_column_text(row, 0))).value();
          });
    return found;
  }

  // Changes the document as another version would.
  void rewrite(const char* kind, const std::function<void(Json&)>& edit) {
    Json changed = document(kind);
    edit(changed);
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(database, "UPDATE objects SET json=? WHERE kind=?", -1, &statement, nullptr);
    sqlite3_bind_text(statement, 1, changed.dump().c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(statement, 2, kind, -1, SQLITE_STATIC);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
    sqlite3_close(database);
  }

  void visit(const std::string& sql, const std::function<void(sqlite3_stmt*)>& row) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr);
    while (sqlite3_step(statement) == SQLITE_ROW) row(statement);
    sqlite3_finalize(statement);
    sqlite3_close(database);
  }
};

TEST_F(VersionsTest, FieldsOfANewerVersionDecideNothingAndStay) {
  rewrite("Study", [](Json& study) {
    study.find("spec")->set("fairness", "strict");
    study.find("status")->set("forecast", 0.5);
  });
  rewrite("Trial", [](Json& trial) {
    Json* const status = trial.find("status");
    status->set("energy", 7);
    Json fact = status->find("facts")->as_array()[0];
    status->set("facts", Json(Json::Array{fact.set("joules", 3)}));
  });
  {
    const auto store = open();
    ASSERT_NE(store, nullptr);
    ASSERT_EQ(store->warnings().size(), 1U);
    EXPECT_THAT(store->warnings()[0], HasSubstr("spec.fairness, status.forecast"));
    api::Study study = store->get_study({"", "s"}).value();
    study.spec.budget.trials = 77;
    study = store->update_study_spec(study).value();
    study.status.progress = "1/77";
    ASSERT_TRUE(store->update_study_status(study).ok());
    api::Trial trial = *store->get_trial({"", "s-0"}).value();
    trial.status.phase = api::TrialPhase::kRunning;
    trial.status.facts.push_back({2, api::FactKind::kRung, 9, {0.4}, false, 8});
    ASSERT_TRUE(store->update_trial_status(trial).ok());
  }
  const Json study = document("Study");
  EXPECT_EQ(*study.find("spec")->find("fairness"), Json("strict"));
  EXPECT_EQ(*study.find("status")->find("forecast"), Json(0.5));
  EXPECT_EQ(study.find("spec")->find("budget")->find("trials")->as_integer(), 77);
  EXPECT_EQ(*study.find("status")->find("progress"), Json("1/77"));
  const Json trial = document("Trial");
  const Json::Array& facts = trial.find("status")->find("facts")->as_array();
  EXPECT_EQ(trial.find("status")->find("energy")->as_integer(), 7);
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_EQ(facts[0].find("joules")->as_integer(), 3);
  EXPECT_EQ(facts[1].find("seq")->as_integer(), 2);
  EXPECT_NE(open(Mode::kReadOnly), nullptr);
}

// In this version at most 1000 trials may run at once, and a name has at most 63 letters.
TEST_F(VersionsTest, WhatAnotherVersionTookWithinItsBoundsIsRead) {
  rewrite("Study", [](Json& study) {
    study.find("spec")->find("budget")->set("parallelism", 5000);
    study.find("spec")->find("resource")->set("unit", std::string(300, 'u'));
  });
  const auto store = open();
  ASSERT_NE(store, nullptr);
  api::Study study = store->get_study({"", "s"}).value();
  EXPECT_EQ(study.spec.budget.parallelism, 5000);
  study.status.progress = "1/20";
  EXPECT_TRUE(store->update_study_status(study).ok());
}

TEST_F(VersionsTest, ANameThatIsNotKnownIsSaidWithTheWayOut) {
  rewrite("Trial", [](Json& trial) { trial.find("status")->set("phase", "Hibernating"); });
  const auto store = SqliteStore::open(path_, Mode::kReadOnly);
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.error().message, HasSubstr("Hibernating"));
  EXPECT_THAT(store.error().message, HasSubstr("if a newer fettle wrote it, use that one"));
}

}  // namespace
}  // namespace fettle::local
