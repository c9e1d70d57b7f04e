// Tokens: when they are read again, and how long an earlier one still counts.
#include "kube/transport/credentials.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "kube/transport/exec_plugin.h"
#include "kube/transport/testing/test_directory.h"

namespace fettle::kube {
namespace {

using namespace std::chrono_literals;  // NOLINT: durations read better so

class FileToken : public testing::Test {
 protected:
  std::string token() {
    const Result<Credential> current = source_->current();
    return current.ok() ? current->token : current.error().message;
  }

  const TestDirectory directory_;
  const std::string file_ = directory_.write("token", "first\n");
  TimePoint now_ = TimePoint() + 1h;
  std::unique_ptr<TokenSource> source_ = file_token(file_, [this] { return now_; });
};

TEST_F(FileToken, IsReadAgainTenSecondsBeforeItsMinuteIsOver) {
  EXPECT_EQ(token(), "first");
  directory_.write("token", "second");
  now_ += 49s;
  EXPECT_EQ(token(), "first");
  now_ += 1s;
  EXPECT_EQ(token(), "second");
}

TEST_F(FileToken, TheOldTokenCountsWhileTheFileIsUnreadable) {
  EXPECT_EQ(token(), "first");
  std::filesystem::remove(file_);
  now_ += 10min;
  EXPECT_EQ(token(), "first");
  directory_.write("token", " \n");
  EXPECT_EQ(token(), "first");
  directory_.write("token", "third");
  EXPECT_EQ(token(), "third");
}

TEST_F(FileToken, ARejectedTokenIsReadAgain) {
  EXPECT_EQ(token(), "first");
  directory_.write("token", "second");
  source_->reject(now_);
  EXPECT_EQ(token(), "second");
}

TEST_F(FileToken, ATokenReadAfterARejectedRequestIsKept) {
  const TimePoint sent = now_;
  now_ += 1s;
  EXPECT_EQ(token(), "first");
  directory_.write("token", "second");
  source_->reject(sent);
  EXPECT_EQ(token(), "first");
}

TEST_F(FileToken, AnInvalidTokenIsReportedButNotShown) {
  struct Case {
    std::string content;
    std::string message;
  };
  const Case cases[] = {
      {"", ": the token is empty"},
      {"se cret", ": the token holds a space, a line break or a byte that is not ASCII"},
      {"se\r\ncret", ": the token holds a space, a line break or a byte that is not ASCII"},
      {std::string(70'000, 'x'), " is larger than 65538 bytes"},
  };
  for (const Case& test : cases) {
    directory_.write("token", test.content);
    EXPECT_EQ(token(), file_ + test.message);
  }
}

constexpr const char* kVersion = "client.authentication.k8s.io/v1";

std::string credential(const std::string& status) {
  return std::string("{\"kind\":\"ExecCredential\",\"apiVersion\":\"") + kVersion +
         "\",\"status\":" + status + "}";
}

TEST(ExecCredential, IsReadWithItsExpiry) {
  const auto read = read_exec_credential(
      credential("{\"token\":\"abc\",\"expirationTimestamp\":\"1970-01-01T01:00:00Z\"}"), kVersion,
      600'000);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->credential.token, "abc");
  EXPECT_EQ(read->valid_for, 50min);
  const auto certificate = read_exec_credential(
      credential("{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"}"), kVersion, 0);
  EXPECT_EQ(certificate->credential, (Credential{"", "C", "K"}));
  EXPECT_FALSE(certificate->valid_for.has_value());
}

TEST(ExecCredential, ProblemsAreSaidWithoutTheSecret) {
  struct Case {
    std::string output;
    std::string message;
  };
  const Case cases[] = {
      {"secret", "did not print an ExecCredential as JSON"},
      {"{}", "did not print an ExecCredential"},
      {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"v2\"}",
       "answered with apiVersion \"v2\", expected client.authentication.k8s.io/v1"},
      {credential("3"), "printed no status"},
      {credential("{}"), "printed neither a token nor a client certificate"},
      {credential("{\"clientKeyData\":\"K\"}"),
       "printed only one of clientCertificateData and clientKeyData"},
      {credential("{\"token\":\"a b\"}"),
       "status.token: the token holds a space, a line break or a byte that is not ASCII"},
      {credential("{\"token\":\"a\",\"expirationTimestamp\":\"soon\"}"),
       "printed the expirationTimestamp \"soon\", expected the form 2026-01-31T12:00:00Z"},
  };
  for (const Case& test : cases) {
    const auto read = read_exec_credential(test.output, kVersion, 0);
    ASSERT_FALSE(read.ok()) << test.output;
    EXPECT_EQ(read.error().message, test.message);
  }
}

TEST(ExecInfo, TellsOfTheClusterWhenAsked) {
  ClusterConfig config;
  config.server = "https://h";
  config.tls.ca.data = "CA";
  config.exec = ExecConfig();
  config.exec->api_version = kVersion;
  EXPECT_EQ(exec_info(config, false).value(),
            "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
            "\"spec\":{\"interactive\":false}}");
  config.exec->wants_cluster = true;
  EXPECT_EQ(exec_info(config, true).value(),
            "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
            "\"spec\":{\"interactive\":true,\"cluster\":{\"server\":\"https://h\","
            "\"certificate-authority-data\":\"Q0E=\"}}}");
}

// Runs `script` as the plugin.
std::string run_plugin(const std::string& script, std::chrono::milliseconds limit = kMaxExec) {
  const TestDirectory directory;
  ClusterConfig config;
  config.exec = ExecConfig();
  config.exec->command = directory.write("plugin", "#!/bin/sh\n" + script + "\n");
  config.exec->arguments = {"$(argument)"};
  config.exec->environment = {{"TOKEN", "from-environment"}};
  config.exec->api_version = kVersion;
  config.exec->install_hint = "install it";
  config.exec->interactive = ExecConfig::Interactive::kNever;
  std::filesystem::permissions(config.exec->command, std::filesystem::perms::owner_all);
  if (script.empty()) std::filesystem::remove(config.exec->command);
  const auto current = exec_credentials(config, limit)->current();
  if (current.ok()) return current->token;
  std::string message = current.error().message;
  if (const auto at = message.find(config.exec->command); at != std::string::npos) {
    message.replace(at, config.exec->command.size(), "PLUGIN");
  }
  return message;
}

TEST(ExecPlugin, IsRunWithItsArgumentsAndEnvironment) {
  const std::string print = "echo '" + credential("{\"token\":\"'$TOKEN'\"}") + "'";
  EXPECT_EQ(run_plugin(print), "from-environment");
  EXPECT_EQ(run_plugin("[ \"$1\" = '$(argument)' ] || exit 9\n" + print), "from-environment");
  EXPECT_EQ(run_plugin("case \"$KUBERNETES_EXEC_INFO\" in *ExecCredential*) ;; *) exit 8;; esac\n" +
                       print),
            "from-environment");
  EXPECT_EQ(run_plugin("read line && exit 7\n" + print), "from-environment");
}

// As envp of a process, without an entry for a name that is unset.
class Environment {
 public:
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
    environ = pointers_.data();
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { environ = before_; }

 private:
  char** before_ = environ;
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

TEST(ExecPlugin, TheKubeconfigsEnvironmentAndOurOwnWinAndTheRestStays) {
  const Environment odd({"TOKEN=inherited", "TOKEN=again", "without an equals sign",
                         "KUBERNETES_EXEC_INFO=inherited", "PATH=/usr/bin:/bin", "LAST=here"});
  const std::string print = "echo '" + credential("{\"token\":\"'$TOKEN$LAST'\"}") + "'";
  EXPECT_EQ(run_plugin("case \"$KUBERNETES_EXEC_INFO\" in *ExecCredential*) ;; *) exit 8;; esac\n" +
                       print),
            "from-environmenthere");
}

TEST(ExecPlugin, ReportsEachFailure) {
  EXPECT_EQ(run_plugin("exit 3"), "the credential plugin PLUGIN: exit code 3");
  EXPECT_EQ(run_plugin("kill -9 $$"), "the credential plugin PLUGIN: ended by signal 9");
  EXPECT_EQ(run_plugin("echo hello"),
            "the credential plugin PLUGIN: did not print an ExecCredential as JSON");
  EXPECT_EQ(run_plugin("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"),
            "the credential plugin PLUGIN: printed more than 4 MiB");
  EXPECT_EQ(run_plugin(""),
            "the credential plugin PLUGIN: cannot be run: No such file or directory\ninstall it");
}

// Even if its output, which is read first, has ended.
TEST(ExecPlugin, AHangingPluginIsKilled) {
  for (const char* script : {"exec sleep 20", "exec >&-; exec sleep 20"}) {
    EXPECT_EQ(run_plugin(script, 300ms), "the credential plugin PLUGIN: did not end within 0.3s")
        << script;
  }
}

}  // namespace
}  // namespace fettle::kube
