// For tests: a store in its own directory, a Study `s` for it, and trials of that Study.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "api/study/study_json.h"
#include "runtime/local/store/sqlite_store.h"

namespace fettle::local {

class StoreTest : public testing::Test {
 protected:
  using Mode = SqliteStore::Mode;

  StoreTest() {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ + "/s.db";
  }
  ~StoreTest() override { std::filesystem::remove_all(directory_); }

  // Null if the store cannot be opened, and then the test has failed.
  std::unique_ptr<SqliteStore> open(Mode mode = Mode::kReadWrite) const {
    auto opened = SqliteStore::open(path_, mode);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    return opened.ok() ? std::move(opened).value() : nullptr;
  }

  static api::Study study() {
    const Json document = parse_json(R"({
      "apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": "s"},
      "spec": {
        "objectives": [{"metric": "loss", "direction": "Minimize"}],
        "parameters": [{"name": "x", "type": "Double", "min": 0, "max": 1}],
        "trial": {"template": {"spec": {"containers": [
          {"name": "trainer", "image": "none", "command": ["/bin/true"]}]}}}}})")
                              .value();
    api::ReadStudy read = api::read_study(document);
    for (const auto& error : read.errors) ADD_FAILURE() << error.path << ": " << error.message;
    return read.study;
  }

  static api::Trial trial(std::int64_t index) {
    api::Trial trial;
    trial.metadata.name = "s-" + std::to_string(index);
    trial.spec.study = "s";
    trial.spec.index = index;
    trial.spec.parameters = Json::object({{"x", 0.1 * static_cast<double>(index)}});
    return trial;
  }

  std::string directory_;
  std::string path_;
};

}  // namespace fettle::local
