// The server against raw sockets: its answers, and clients that are wrong, slow or silent.
#include "base/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>

#include "base/file.h"

namespace fettle {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  return address;
}

// Leaves the file of a Unix socket behind, as a killed server does.
class LeftSocket {
 public:
  explicit LeftSocket(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    const sockaddr_un address = unix_address(path);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~LeftSocket() { ::close(fd_); }
  LeftSocket(const LeftSocket&) = delete;
  LeftSocket& operator=(const LeftSocket&) = delete;

 private:
  int fd_;
};

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
  explicit Socket(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    const sockaddr_un address = unix_address(path);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
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
  // Reads until the text ends with `ending`, or the server closes.
  std::string read_until(const std::string& ending) const {
    std::string text;
    char byte = 0;
    while (!text.ends_with(ending) && ::recv(fd_, &byte, 1, 0) == 1) text += byte;
    return text;
  }
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
    const auto port = server_.listen(0, [this](const HttpRequest& request) -> HttpAnswer {
      if (request.path == "/big") return {200, "text/plain", std::string(4 << 20, 'x')};
      if (request.path == "/hello") return {200, "text/plain", "hi\n"};
      if (request.path == "/echo") return echo(request);
      if (request.path == "/stream") return {200, "text/event-stream", "", {}, stream_};
      if (request.path == "/later") return {.later = later_};
      return {404, "text/plain", "no " + request.path + "\n"};
    });
    ASSERT_TRUE(port.ok()) << port.error().message;
    port_ = *port;
    ASSERT_TRUE(server_.start().ok());
  }

  static HttpAnswer echo(const HttpRequest& request) {
    std::string body;
    body += request.header("host");
    body += ' ';
    body += request.header("x-one");
    body += ' ';
    body += request.query_value("study");
    body += ' ';
    body += request.query_value("since");
    body += " [" + std::string(request.query_value("flag")) + "]";
    body += " [" + std::string(request.header("absent")) + "]";
    return {.body = body, .headers = {{"X-More", "yes"}}};
  }

  static bool wait_until(const std::function<bool()>& holds) {
    for (int i = 0; i < 24'000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  std::string ask(const std::string& request, bool ipv6 = false) const {
    const Socket client(port_, ipv6);
    EXPECT_TRUE(client.send(request));
    return client.read_all();
  }

  std::shared_ptr<HttpStream> stream_ = std::make_shared<HttpStream>();
  std::shared_ptr<HttpLater> later_ = std::make_shared<HttpLater>();
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

TEST_F(HttpServerTest, AHandlerSeesHeadersAndQuery) {
  const std::string answer = ask(
      "GET /echo?study=a%20b&since=3&flag HTTP/1.1\r\nHOST: me:1\r\nX-One: 1\r\nx-one: 2\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("X-More: yes\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nme:1 2 a b 3 [] []"));
}

TEST_F(HttpServerTest, AStreamArrivesInPieces) {
  const Socket client(port_, false);
  ASSERT_TRUE(client.send("GET /stream HTTP/1.0\r\n\r\n"));
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Content-Type: text/event-stream"));
  EXPECT_TRUE(stream_->send("one\n"));
  EXPECT_EQ(client.read_until("\n"), "one\n");
  EXPECT_FALSE(client.has_answer(std::chrono::milliseconds(300)));
  EXPECT_TRUE(stream_->send("two\n"));
  EXPECT_TRUE(stream_->send("three\n"));
  EXPECT_EQ(client.read_until("three\n"), "two\nthree\n");
  stream_->end();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_FALSE(stream_->send("four\n"));
}

TEST_F(HttpServerTest, AStreamMayEndBeforeItIsRead) {
  EXPECT_TRUE(stream_->send("all of it"));
  stream_->end();
  EXPECT_THAT(ask("GET /stream HTTP/1.0\r\n\r\n"), EndsWith("\r\n\r\nall of it"));
  EXPECT_TRUE(stream_->is_closed());
}

TEST_F(HttpServerTest, AStreamLearnsThatItsClientHasGone) {
  {
    const Socket client(port_, false);
    ASSERT_TRUE(client.send("GET /stream HTTP/1.0\r\n\r\n"));
    client.read_until("\r\n\r\n");
  }
  EXPECT_TRUE(wait_until([&] { return !stream_->send("anybody?\n"); }));
}

TEST_F(HttpServerTest, AStopEndsStreams) {
  const Socket idle(port_, false);
  ASSERT_TRUE(idle.send("GET /stream HTTP/1.0\r\n\r\n"));
  idle.read_until("\r\n\r\n");
  server_.stop();
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(stream_->is_closed());
}

TEST_F(SlowClientTest, AStreamOutlivesTheLifetimeOfItsConnection) {
  const Socket client(port_, false);
  ASSERT_TRUE(client.send("GET /stream HTTP/1.0\r\n\r\n"));
  client.read_until("\r\n\r\n");
  EXPECT_FALSE(client.has_answer(std::chrono::milliseconds(1500)));
  EXPECT_TRUE(stream_->send("still here\n"));
  EXPECT_EQ(client.read_until("\n"), "still here\n");
}

TEST_F(SlowClientTest, AStreamThatNobodyReadsIsDropped) {
  const Socket client(port_, false);
  ASSERT_TRUE(client.send("GET /stream HTTP/1.0\r\n\r\n"));
  client.read_until("\r\n\r\n");
  const std::string piece(1 << 20, 'x');
  while (stream_->send(piece)) continue;
  EXPECT_LE(stream_->pending(), HttpStream::kMostPending);
  EXPECT_TRUE(wait_until([&] { return stream_->is_closed(); }));
}

TEST(HttpServer, ListensOnASocketOfThisUser) {
  const std::string path = testing::TempDir() + "http_server.sock";
  ::unlink(path.c_str());
  const auto hello = [](const HttpRequest&) { return HttpAnswer{.body = "hi\n"}; };
  {
    HttpServer server;
    ASSERT_TRUE(server.listen(path, hello).ok());
    ASSERT_TRUE(server.start().ok());
    EXPECT_EQ(std::filesystem::status(path).permissions() & std::filesystem::perms::mask,
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const Socket client(path);
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(client.read_all(), EndsWith("hi\n"));
    HttpServer second;
    EXPECT_THAT(second.listen(path, hello).error().message, HasSubstr("is in use"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(HttpServer, ReplacesASocketThatNobodyServesAndNoOtherFile) {
  const std::string path = testing::TempDir() + "http_server_left.sock";
  ::unlink(path.c_str());
  const auto hello = [](const HttpRequest&) { return HttpAnswer{}; };
  ASSERT_TRUE(write_file(path, "mine").ok());
  HttpServer server;
  EXPECT_THAT(server.listen(path, hello).error().message, HasSubstr("exists, and is no socket"));
  ::unlink(path.c_str());
  { const LeftSocket left(path); }
  EXPECT_TRUE(server.listen(path, hello).ok());
  EXPECT_THAT(server.listen(testing::TempDir() + std::string(200, 'x'), hello).error().message,
              HasSubstr("the path of a socket has at most 107 bytes"));
}

TEST(HttpServer, OfThisMachineListensOnLoopbackAlone) {
  HttpServer server;
  const auto port = server.listen(
      0, [](const HttpRequest&) { return HttpAnswer{}; }, Reach::kThisMachine);
  ASSERT_TRUE(port.ok()) << port.error().message;
  ASSERT_TRUE(server.start().ok());
  EXPECT_TRUE(Socket(*port, false).connected());
  EXPECT_FALSE(Socket(*port, true).connected());
}

TEST(HttpServer, APortThatIsTakenIsAnErrorInWords) {
  HttpServer first;
  const auto port = first.listen(0, [](const HttpRequest&) { return HttpAnswer{}; });
  ASSERT_TRUE(port.ok());
  HttpServer second;
  const auto taken = second.listen(*port, [](const HttpRequest&) { return HttpAnswer{}; });
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message, HasSubstr("cannot listen on port " + std::to_string(*port)));
}

// ---- Answers that come later -------------------------------------------------------------------

constexpr const char* kGetLater = "GET /later HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(HttpServerTest, AnswersOnceAnotherThreadHasTheAnswer) {
  const Socket client(port_, false);
  ASSERT_TRUE(client.send(kGetLater));
  EXPECT_THAT(ask("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("hi\n"));  // meanwhile
  later_->answer({.status = 404, .body = "none\n"});
  later_->answer({.body = "a second answer\n"});
  const std::string answer = client.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nnone\n"));
}

TEST_F(HttpServerTest, TakesAnAnswerThatIsThereAlready) {
  later_->answer({.body = "quick\n"});
  EXPECT_THAT(ask(kGetLater), EndsWith("quick\n"));
}

TEST_F(HttpServerTest, MayAnswerLaterWithAStream) {
  const Socket client(port_, false);
  ASSERT_TRUE(client.send("GET /later HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(stream_->send("one\n"));
  later_->answer({.stream = stream_});
  stream_->end();
  EXPECT_THAT(client.read_all(), EndsWith("\r\n\r\none\n"));
}

TEST_F(SlowClientTest, AnAnswerMayTakeLongerThanALifetime) {
  const Socket slow(port_, false);
  ASSERT_TRUE(slow.send(kGetLater));
  const Socket silent(port_, false);
  EXPECT_EQ(silent.read_all(), "");  // its lifetime is over
  later_->answer({.body = "at last\n"});
  EXPECT_THAT(slow.read_all(), EndsWith("at last\n"));
}

TEST_F(HttpServerTest, StopsWhileAnAnswerIsAwaited) {
  const Socket client(port_, false);
  ASSERT_TRUE(client.send(kGetLater));
  EXPECT_THAT(ask("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("hi\n"));
  server_.stop();
  EXPECT_EQ(client.read_all(), "");
  later_->answer({.body = "too late\n"});
}

}  // namespace
}  // namespace fettle
