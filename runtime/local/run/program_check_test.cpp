// Whether a template's program exists, and which parameters it seems not to use.
#include "runtime/local/run/program_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/test_paths.h"

namespace fettle::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ProgramCheck : public testing::Test {
 protected:
  ProgramCheck() {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-check-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~ProgramCheck() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(write_file(folder_ + "/" + name, text).ok());
  }
  static api::Study study_of(const std::string& container) {
    api::Study study;
    study.spec.trial.pod_template =
        parse_json("{\"spec\": {\"containers\": [" + container + "]}}").value();
    for (const char* name : {"lr", "momentum"}) study.spec.parameters.emplace_back().name = name;
    return study;
  }
  std::string said_of(const std::string& container) const {
    const Status status = check_program(study_of(container), folder_);
    return status.ok() ? "" : status.error().message;
  }
  std::vector<std::string> unused_of(const std::string& container) const {
    return unused_parameters(study_of(container), folder_);
  }

  std::string folder_;
};

TEST_F(ProgramCheck, APathIsLookedForWhereTrialsStart) {
  EXPECT_THAT(said_of(R"json({"command": ["python3", "train.py"]})json"),
              HasSubstr("command: there is no train.py in " + folder_ + ", where trials start"));
  write("train.py", "");
  EXPECT_EQ(said_of(R"json({"command": ["python3", "-u", "train.py"]})json"), "");
  EXPECT_EQ(said_of(R"json({"command": ["python3"], "args": ["train.py"]})json"), "");
  EXPECT_THAT(said_of(R"json({"command": ["./train.py"]})json"),
              HasSubstr("not executable (chmod +x)"));
  EXPECT_THAT(said_of(R"json({"command": ["bin/train"]})json"),
              HasSubstr("there is no bin/train in "));
  EXPECT_THAT(said_of(R"json({"command": ["sh", "a.sh"], "workingDir": "/usr"})json"),
              HasSubstr("there is no a.sh in /usr"));
  EXPECT_THAT(said_of(R"json({"command": ["sh"], "workingDir": "/no/such"})json"),
              HasSubstr("workingDir: there is no folder /no/such"));
}

TEST_F(ProgramCheck, AProgramIsLookedForInPath) {
  EXPECT_EQ(said_of(R"json({"command": ["sh", "-c", "no such thing"]})json"), "");
  EXPECT_THAT(said_of(R"json({"command": ["fettle-no-such-program"]})json"),
              HasSubstr("fettle-no-such-program is not found in PATH"));
  EXPECT_EQ(said_of(R"json({"command": ["x-y"], "env": [{"name": "PATH", "value": "/x"}]})json"),
            "");
  EXPECT_EQ(said_of(R"json({"command": ["$(FETTLE_PARAM_LR)"]
})json"),
            "");
  EXPECT_EQ(said_of(R"json({"command": ["python3", "-m", "train"]})json"), "");
  EXPECT_EQ(said_of(R"json({"command": ["python3", "$(FETTLE_PARAM_LR).py"]})json"), "");
}

TEST_F(ProgramCheck, AParameterThatNothingMentionsIsSaid) {
  const std::string one = R"json({"command": ["x", "--lr=$(FETTLE_PARAM_LR)"]})json";
  EXPECT_THAT(unused_of(one), ElementsAre(HasSubstr("parameter momentum: the template does not "
                                                    "mention FETTLE_PARAM_MOMENTUM")));
  EXPECT_THAT(unused_of(R"json({"command": ["x", "$(FETTLE_PARAM_LR)$(FETTLE_PARAM_MOMENTUM)"]
  })json"),
              IsEmpty());
  EXPECT_THAT(unused_of(R"json({"command": ["x", "$(FETTLE_PARAM_LR_MAX)"]
  })json"),
              IsEmpty())
      << "a program that is not known may read its environment";
}

TEST_F(ProgramCheck, AScriptIsReadForWhatItMentions) {
  const std::string runs = R"json({"command": ["python3", "train.py"]})json";
  EXPECT_THAT(unused_of(runs), IsEmpty()) << "a script that is not there";
  write("train.py", "lr = os.environ['FETTLE_PARAM_LR']");
  EXPECT_THAT(unused_of(runs), ElementsAre(HasSubstr("parameter momentum: the template and its "
                                                     "script do not mention")));
  write("train.py", "open(os.environ['FETTLE_TRIAL'])");
  EXPECT_THAT(unused_of(runs), IsEmpty());
  write("train.py", "os.environ['FETTLE_PARAM_' + name]");
  EXPECT_THAT(unused_of(runs), IsEmpty());
  write("train.py", "for trial in fettle.trials(): train(**trial.parameters)");
  EXPECT_THAT(unused_of(runs), IsEmpty());
  write("train.py", "os.environ['FETTLE_TRIAL_NAME']");
  EXPECT_THAT(unused_of(runs), testing::SizeIs(2));
}

}  // namespace
}  // namespace fettle::local
