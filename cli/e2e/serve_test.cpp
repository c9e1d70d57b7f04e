// fettle serve: the program as its user starts it, beside a study that runs, is killed and resumed.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "cli/e2e/workshop.h"
#include "cli/testing/stream_client.h"

namespace fettle::e2e {
namespace {

using cli::StreamClient;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kToken = "0123456789abcdef";

class ServeTest : public testing::Test {
 protected:
  // Serves the workshop's studies on a socket in it.
  void serve(const std::vector<std::string>& more = {}) {
    shop_.write("token", std::string(kToken) + '\n');
    std::vector<std::string> line = {"serve", "--socket", "s", "--token-file", "token"};
    line.insert(line.end(), more.begin(), more.end());
    server_ = shop_.start(line);
    ASSERT_TRUE(shop_.wait_until_said(server_, "Ctrl-C ends the pages"));
  }
  StreamClient open(const std::string& path) {
    return {shop_.path("s"), path,
            "Host: localhost:8338\r\nAuthorization: Bearer " + std::string(kToken) + "\r\n"};
  }

  Workshop shop_;
  pid_t server_ = 0;
};

TEST_F(ServeTest, FollowsAStudyFromItsBeginningToItsDeletion) {
  serve();
  StreamClient list = open("/events");
  ASSERT_TRUE(list.gets("\"studies\":[]"));
  StreamClient page = open("/events?study=digits");
  ASSERT_TRUE(page.gets("event: gone\n"));
  StudyText study;
  study.script = std::string("echo hello; ") + kUntilGo;
  study.budget = "{trials: 2, parallelism: 1}";
  pid_t runner = shop_.run_until_begun(study, 1);
  ASSERT_TRUE(list.gets("\"name\":\"digits\""));
  ASSERT_TRUE(page.gets("event: reset\n"));
  StreamClient fresh = open("/events?study=digits");
  ASSERT_TRUE(fresh.gets("event: document\n"));
  StreamClient log = open("/api/trial/digits-0/log?follow=1");
  ASSERT_TRUE(log.gets("hello"));

  ::kill(runner, SIGKILL);
  shop_.finish(runner);
  ASSERT_TRUE(fresh.gets("\"state\":\"interrupted\""));
  ASSERT_TRUE(list.gets("\"state\":\"interrupted\""));
  runner = shop_.start({"run", "study.yaml"});
  ASSERT_TRUE(fresh.gets("\"state\":\"running\""));
  shop_.write("go", "");
  ASSERT_TRUE(fresh.gets("\"phase\":\"Completed\""));
  ASSERT_TRUE(fresh.gets("\"state\":\"succeeded\""));
  EXPECT_EQ(shop_.finish(runner).code, 0);

  EXPECT_THAT(open("/api/study/digits").read_all(), HasSubstr("\"state\":\"succeeded\""));
  EXPECT_THAT(open("/api/trial/digits-1/why").read_all(), HasSubstr("chosen"));
  EXPECT_THAT(open("/metrics").read_all(),
              HasSubstr("fettle_study_state{study=\"digits\",state=\"succeeded\"} 1"));
  EXPECT_EQ(shop_.fettle({"delete", "digits"}).code, 0);
  ASSERT_TRUE(fresh.gets("event: gone\n"));
  EXPECT_EQ(shop_.interrupt(server_, SIGINT).code, 0);
  EXPECT_FALSE(shop_.exists("s"));
}

TEST_F(ServeTest, PrintsAnAddressWithATokenAndAnswersNobodyElse) {
  const pid_t server = shop_.start({"serve", "--port", "0"});
  ASSERT_TRUE(shop_.wait_until_said(server, "Ctrl-C ends the pages"));
  const Finished ended = shop_.interrupt(server, SIGTERM);
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, HasSubstr("The studies in .fettle are at\n\n  http://127.0.0.1:"));
  EXPECT_THAT(ended.out, testing::ContainsRegex("/[?]token=[0-9a-f]{32}\n"));
}

TEST_F(ServeTest, ServesTheNamedStudiesAlone) {
  shop_.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop_.fettle({"run", "study.yaml"}).code, 0);
  serve({"other"});
  EXPECT_THAT(open("/api/studies").read_all(), HasSubstr("\"studies\":[]"));
  EXPECT_THAT(open("/api/study/digits").read_all(), StartsWith("HTTP/1.1 404"));
  const Finished ended = shop_.interrupt(server_, SIGINT);
  EXPECT_THAT(ended.err, HasSubstr("no study 'other' in .fettle yet; its page waits for it"));
}

TEST_F(ServeTest, TheSocketIsOfThisUserAlone) {
  serve();
  struct stat file {};
  ASSERT_EQ(::stat(shop_.path("s").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
  const Finished second = shop_.fettle({"serve", "--socket", "s"});
  EXPECT_EQ(second.code, 3);
  EXPECT_THAT(second.err, HasSubstr("s is in use"));
}

TEST_F(ServeTest, NamesTheWayOutOfATakenPort) {
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const Finished second = shop_.fettle({"serve", "--port", port});
  EXPECT_EQ(second.code, 3);
  EXPECT_THAT(second.err, AllOf(HasSubstr("cannot listen on port " + port),
                                HasSubstr("--port takes another one, 0 any that is free")));
  ::close(taken);
}

TEST_F(ServeTest, RefusesWhatDoesNotGoTogether) {
  shop_.write("token", "short\n");
  const std::vector<std::pair<std::vector<std::string>, const char*>> lines = {
      {{"--socket", "s", "--port", "0"}, "--socket and --port exclude each other"},
      {{"--socket", "s", "--open"}, "--open does not go with --socket"},
      {{"--token-file", "token"}, "token: a token has 16 to 256 characters"},
      {{"--token-file", "nothing"}, "nothing"},
      {{"--port", "70000"}, "--port"},
  };
  for (const auto& [arguments, error] : lines) {
    std::vector<std::string> line = {"serve"};
    line.insert(line.end(), arguments.begin(), arguments.end());
    const Finished refused = shop_.fettle(line);
    EXPECT_NE(refused.code, 0) << error;
    EXPECT_THAT(refused.err, HasSubstr(error));
  }
}

}  // namespace
}  // namespace fettle::e2e
