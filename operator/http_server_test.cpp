// The server against raw sockets: its answers, and clients that are wrong, slow or silent.
#include "operator/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>

namespace fettle::op {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A client's end of a connection.
class Socket {
 public:
  Socket(std::uint16_t port, bool ipv6) : fd_(::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    six.sin6_addr = in6addr_loopback;
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = (ipv6 ? ::connect(fd_, reinterpret_cast<sockaddr*>(&six), sizeof six)
                       : ::connect(fd_, reinterpret_cast<sockaddr*>(&four), sizeof four)) == 0;
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connected() const { return connected_; }
  bool send(const std::string& text) const {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Whether the server has sent something, or does so within `most`.
  bool has_answer(std::chrono::milliseconds most) const {
    pollfd polled{fd_, POLLIN, 0};
    return ::poll(&polled, 1, static_cast<int>(most.count())) > 0;
  }
  void end_sending() const { ::shutdown(fd_, SHUT_WR); }
  // Reads all bytes until the server closes.
  std::string read_all() const {
    std::string text;
    char bytes[4096];
    for (ssize_t got = 0; (got = ::recv(fd_, bytes, sizeof bytes, 0)) > 0;) {
      text.append(bytes, static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  int fd_;
  bool connected_ = false;
};

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

class HttpServerTest : public testing::Test {
 protected:
  // `lifetime`: of connections; by default longer than any answer takes on a busy machine.
  explicit HttpServerTest(std::chrono::milliseconds lifetime = std::chrono::seconds(60))
      : server_(lifetime) {}

  void SetUp() override {
    const auto port = server_.listen(0, [](std::string_view path) -> HttpAnswer {
      if (path == "/big") return {200, "text/plain", std::string(4 << 20, 'x')};
      if (path == "/hello") return {200, "text/plain", "hi\n"};
      return {404, "text/plain", "no " + std::string(path) + "\n"};
    });
    ASSERT_TRUE(port.ok()) << port.error().message;
    port_ = *port;
    ASSERT_TRUE(server_.start().ok());
  }

  std::string ask(const std::string& request, bool ipv6 = false) const {
    const Socket client(port_, ipv6);
    EXPECT_TRUE(client.send(request));
    return client.read_all();
  }

  HttpServer server_;
  std::uint16_t port_ = 0;
};

class SlowClientTest : public HttpServerTest {
 protected:
  SlowClientTest() : HttpServerTest(std::chrono::milliseconds(500)) {}
};

TEST_F(HttpServerTest, AnswersProbes) {
  const std::string answer = ask("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  for (const char* header :
       {"Content-Type: text/plain\r\n", "Content-Length: 3\r\n", "Connection: close\r\n"}) {
    EXPECT_THAT(answer, HasSubstr(header));
  }
  EXPECT_THAT(answer, EndsWith("\r\n\r\nhi\n"));
}

TEST_F(HttpServerTest, AHeadHasNoBody) {
  const std::string answer = ask("HEAD /hello HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, TheQueryIsNoPartOfThePath) {
  EXPECT_THAT(ask("GET /hello?verbose HTTP/1.0\r\n\r\n"), EndsWith("hi\n"));
  EXPECT_THAT(ask("GET /other HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(HttpServerTest, AnswersOnIpv6) {
  if (!Socket(port_, true).connected()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_THAT(ask("GET /hello HTTP/1.1\r\n\r\n", true), EndsWith("hi\n"));
}

TEST_F(HttpServerTest, BadRequestsAreRefused) {
  const struct {
    std::string request;
    std::string status;
  } cases[] = {
      {"GET  HTTP/1.1\r\n\r\n", "400"},
      {"GET hello HTTP/1.1\r\n\r\n", "400"},
      {"GET /he\x01llo HTTP/1.1\r\n\r\n", "400"},
      {"GET /hello FTP/1.1\r\n\r\n", "400"},
      {"GET /hello HTTP/2.0\r\n\r\n", "505"},
      {"POST /hello HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405"},
      {"DELETE /hello HTTP/1.1\r\n\r\n", "405"},
      {"GET /hello HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc", "413"},
      {"GET /hello HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "413"},
      {"GET /hello HTTP/1.1\r\nX: " + std::string(100'000, 'x'), "431"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ask(c.request), StartsWith("HTTP/1.1 " + c.status + " ")) << c.request;
  }
  EXPECT_THAT(ask("GET /hello HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), EndsWith("hi\n"));
}

TEST_F(SlowClientTest, DropsBytesThatAreNotHttp) {
  for (const std::string& bytes : {std::string("nonsense\r\n\r\n"), std::string("\r\n\r\n"),
                                   std::string("\x16\x03\x01\x00\n\n", 6)}) {  // a TLS client
    EXPECT_EQ(ask(bytes), "");
  }
}

TEST_F(HttpServerTest, ARequestMayComeByteByByte) {
  const Socket client(port_, false);
  for (const char c : std::string("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")) {
    ASSERT_TRUE(client.send(std::string(1, c)));
  }
  EXPECT_THAT(client.read_all(), EndsWith("hi\n"));
}

TEST_F(HttpServerTest, AClientThatHasEndedSendingStillGetsItsAnswer) {
  const Socket client(port_, false);
  ASSERT_TRUE(client.send("GET /hello HTTP/1.1\r\n\r\n"));
  client.end_sending();
  EXPECT_THAT(client.read_all(), EndsWith("hi\n"));
}

TEST_F(SlowClientTest, DropsASilentClient) {
  const Socket silent(port_, false);
  EXPECT_EQ(silent.read_all(), "");
}

// Each byte renews an idle timeout, so the lifetime ends this connection.
TEST_F(SlowClientTest, AClientThatKeepsSendingSlowlyIsDropped) {
  const Socket client(port_, false);
  ASSERT_TRUE(client.send("GET /hello HTTP/1.1\r\nX-Slow: "));
  // At this pace a request reaches its size limit only after minutes.
  while (!client.has_answer(std::chrono::milliseconds(20)) && client.send("1")) continue;
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(SlowClientTest, AClientThatDoesNotReadIsDropped) {
  const std::ptrdiff_t with_the_client = open_files() + 1;
  const Socket client(port_, false);
  ASSERT_TRUE(client.send("GET /big HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(client.has_answer(std::chrono::seconds(120)));
  for (int i = 0; i < 24'000 && open_files() > with_the_client; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(open_files(), with_the_client) << "the server has closed its end";
  EXPECT_LT(client.read_all().size(), std::size_t{4} << 20) << "only what the kernel had taken";
}

TEST_F(HttpServerTest, ABigAnswerArrivesWhole) {
  const std::string answer = ask("GET /big HTTP/1.1\r\n\r\n");
  EXPECT_GT(answer.size(), std::size_t{4} << 20);
}

TEST_F(SlowClientTest, SlowClientsInEverySlotHoldUpOthersOnlyForAMoment) {
  std::vector<std::unique_ptr<Socket>> loris;
  for (std::size_t i = 0; i < kMaxConnections + 8; ++i) {
    loris.push_back(std::make_unique<Socket>(port_, false));
    ASSERT_TRUE(loris.back()->send("GET /hel"));
  }
  // On a busy machine this client's own lifetime may end first.
  std::string answer;
  for (int i = 0; i < 240 && answer.empty(); ++i) answer = ask("GET /hello HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, EndsWith("hi\n"));
}

TEST_F(HttpServerTest, ConnectionsThatAreResetDoNoHarm) {
  for (int i = 0; i < 100; ++i) {
    const Socket client(port_, false);
    ASSERT_TRUE(client.send("GET /big HTTP/1.1\r\n\r\n"));
  }
  EXPECT_THAT(ask("GET /hello HTTP/1.1\r\n\r\n"), EndsWith("hi\n"));
}

TEST(HttpServer, APortThatIsTakenIsAnErrorInWords) {
  HttpServer first;
  const auto port = first.listen(0, [](std::string_view) { return HttpAnswer{}; });
  ASSERT_TRUE(port.ok());
  HttpServer second;
  const auto taken = second.listen(*port, [](std::string_view) { return HttpAnswer{}; });
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message, HasSubstr("cannot listen on port " + std::to_string(*port)));
}

}  // namespace
}  // namespace fettle::op
