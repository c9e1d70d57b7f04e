// The transport against a server on the loopback: requests, answers, and the result of every fault.
// (TLS: transport_tls_test.cpp.)
#include "kube/transport/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "kube/transport/cpprest_wire.h"
#include "kube/transport/testing/test_server.h"

namespace fettle::kube {
namespace {

using namespace std::chrono_literals;  // NOLINT: durations read better so
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Only a failing test waits this long, however busy the machine.
constexpr auto kPatience = 120s;

std::unique_ptr<HttpTransport> transport_to(const std::string& url,
                                            std::unique_ptr<TokenSource> tokens = nullptr) {
  if (tokens == nullptr) tokens = std::make_unique<StaticToken>("");
  auto wire = make_cpprest_wire(url, "fettle-test/1", std::make_shared<Tls>(TlsConfig{}));
  return std::make_unique<Transport>(url, std::move(wire).value(), std::move(tokens));
}

HttpResponse response_of(const HttpResult& result) {
  if (const auto* const failure = std::get_if<HttpFailure>(&result)) {
    ADD_FAILURE() << "no answer: " << failure->message;
    return {};
  }
  return std::get<HttpResponse>(result);
}

HttpFailure failure_of(const HttpResult& result) {
  if (const auto* const response = std::get_if<HttpResponse>(&result)) {
    ADD_FAILURE() << "answered " << response->status << " " << response->body;
    return {};
  }
  return std::get<HttpFailure>(result);
}

struct Streamed {
  HttpResult result;
  std::vector<std::string> lines;
};

Streamed stream_all(HttpTransport& transport, std::chrono::milliseconds idle,
                    const std::stop_token& stop = {}) {
  Streamed out;
  out.result = transport.stream(
      {"GET", "/stream", "", ""},
      [&](std::string_view line) {
        out.lines.emplace_back(line);
        return true;
      },
      idle, stop);
  return out;
}

TEST(Call, SendsTheRequestAndReturnsTheAnswer) {
  const TestServer server(
      [](const TestRequest&, TestConnection& connection) { connection.answer(201, "made"); });
  const auto transport =
      transport_to(server.url() + "/prefix", std::make_unique<StaticToken>("secret"));
  const HttpResponse response = response_of(transport->call(
      {"POST", "/api/v1/pods?labelSelector=a%3Db%2Cc&limit=1", "application/json", "{}"},
      kPatience));
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "made");
  ASSERT_EQ(server.requests().size(), 1u);
  const TestRequest request = server.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/prefix/api/v1/pods?labelSelector=a%3Db%2Cc&limit=1");
  EXPECT_EQ(request.body, "{}");
  EXPECT_EQ(request.headers.at("content-type"), "application/json");
  EXPECT_EQ(request.headers.at("authorization"), "Bearer secret");
  EXPECT_EQ(request.headers.at("user-agent"), "fettle-test/1");
  EXPECT_EQ(request.headers.at("accept"), "application/json, */*");
}

TEST(Call, OneConnectionServesManyCallsInARow) {
  const TestServer server([](const TestRequest& request, TestConnection& connection) {
    connection.answer(200, request.method + request.body);
  });
  const auto transport = transport_to(server.url());
  for (const char* const method : {"GET", "DELETE", "PATCH", "PUT", "GET"}) {
    const std::string body = std::string(method) == "GET" ? "" : "{\"a\":1}";
    EXPECT_EQ(
        response_of(transport->call({method, "/x", "application/json", body}, kPatience)).body,
        method + body);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(Call, LargeBodiesGoBothWays) {
  const std::string large(5 << 20, 'x');
  const TestServer server([](const TestRequest& request, TestConnection& connection) {
    connection.answer(200, request.body);
  });
  const auto transport = transport_to(server.url());
  EXPECT_EQ(response_of(transport->call({"PUT", "/x", "text/plain", large}, kPatience)).body,
            large);
}

TEST(Call, AnAnswerLargerThanTheBoundIsRefused) {
  const TestServer server([](const TestRequest&, TestConnection& connection) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 1000 && connection.send(block); ++i) {
    }
    connection.hang_up();
  });
  const auto transport = transport_to(server.url());
  EXPECT_EQ(failure_of(transport->call({"GET", "/", "", ""}, kPatience)).message,
            server.url() + ": the answer is larger than 67108864 bytes");
}

TEST(Call, ReadsRetryAfterAndWarnings) {
  const TestServer server([](const TestRequest&, TestConnection& connection) {
    connection.answer(429, "slow down",
                      "Retry-After: 7\r\nWarning: 299 - \"one, with a comma\"\r\n"
                      "Warning: 299 - \"two \\\"quoted\\\"\"\r\n");
  });
  const auto transport = transport_to(server.url());
  const HttpResponse response = response_of(transport->call({"GET", "/", "", ""}, kPatience));
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.body, "slow down");
  EXPECT_EQ(response.retry_after, std::chrono::seconds(7));
  EXPECT_THAT(response.warnings, ElementsAre("one, with a comma", "two \"quoted\""));
  EXPECT_EQ(response.date_ms, 0);
}

TEST(Call, ReadsTheDate) {
  for (const auto& [header, date_ms] :
       {std::pair{"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 784'111'777'000},
        std::pair{"Date: yesterday\r\n", 0L}}) {
    const TestServer server([header](const TestRequest&, TestConnection& connection) {
      connection.answer(200, "{}", header);
    });
    const auto transport = transport_to(server.url());
    EXPECT_EQ(response_of(transport->call({"GET", "/", "", ""}, kPatience)).date_ms, date_ms);
  }
}

TEST(Call, RedirectsAreNotFollowed) {
  const TestServer elsewhere(
      [](const TestRequest&, TestConnection& connection) { connection.answer(200, "stolen"); });
  const TestServer server([&](const TestRequest&, TestConnection& connection) {
    connection.answer(302, "", "Location: " + elsewhere.url() + "/\r\n");
  });
  const auto transport = transport_to(server.url(), std::make_unique<StaticToken>("secret"));
  EXPECT_EQ(response_of(transport->call({"GET", "/", "", ""}, kPatience)).status, 302);
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST(Call, TheDeadlineHoldsAlsoWhenBytesTrickle) {
  // Trickles until the client leaves; only a failing test reaches the end after two minutes.
  const TestServer server([](const TestRequest&, TestConnection& connection) {
    connection.start_chunked();
    for (int i = 0; i < 12'000 && connection.send_chunk("x"); ++i) {
      std::this_thread::sleep_for(10ms);
    }
    connection.hang_up();
  });
  const auto transport = transport_to(server.url());
  const HttpFailure failure = failure_of(transport->call({"GET", "/", "", ""}, 2s));
  EXPECT_TRUE(failure.maybe_done);
  EXPECT_EQ(failure.message, server.url() + ": no whole answer within 2 s");
}

TEST(Call, ARefusedConnectionWasCertainlyNotSent) {
  // A port without a listener, which no other program can get meanwhile.
  const int held = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(held, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(held, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const HttpFailure failure =
      failure_of(transport_to(url)->call({"POST", "/", "", "{}"}, kPatience));
  EXPECT_FALSE(failure.maybe_done);
  EXPECT_EQ(failure.message, url + ": cannot connect");
  ::close(held);
}

TEST(Call, AHostThatDoesNotResolveWasCertainlyNotSent) {
  const auto transport = transport_to("http://nowhere.invalid:1");
  const HttpFailure failure = failure_of(transport->call({"POST", "/", "", "{}"}, kPatience));
  EXPECT_FALSE(failure.maybe_done);
  EXPECT_EQ(failure.message, "http://nowhere.invalid:1: the host name cannot be resolved");
}

TEST(Call, AConnectionThatEndsBeforeTheAnswerMayHaveDoneIt) {
  const TestServer server(
      [](const TestRequest&, TestConnection& connection) { connection.hang_up(); });
  const HttpFailure failure =
      failure_of(transport_to(server.url())->call({"POST", "/", "", "{}"}, kPatience));
  EXPECT_TRUE(failure.maybe_done);
  EXPECT_THAT(failure.message, StartsWith(server.url() + ": the connection broke: "));
}

TEST(Call, AConnectionThatEndsMidAnswerMayHaveDoneIt) {
  for (const char* const begun :
       {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nhalf",
        "HTTP/1.1 200 OK\r\nX"}) {
    const TestServer server([&](const TestRequest&, TestConnection& connection) {
      connection.send(begun);
      connection.hang_up();
    });
    const HttpFailure failure =
        failure_of(transport_to(server.url())->call({"PUT", "/", "", "{}"}, kPatience));
    EXPECT_TRUE(failure.maybe_done) << begun;
  }
}

// Not desirable, but the library does it: for this reason kube/client/http.h requires writes that
// are safe to repeat.
TEST(Call, ARequestOnAConnectionThatBreaksIsSentAgain) {
  std::atomic<int> posts = 0;
  const TestServer server([&](const TestRequest& request, TestConnection& connection) {
    if (request.method == "POST" && ++posts == 1) {
      connection.hang_up();
      return;
    }
    connection.answer(200, request.body);
  });
  const auto transport = transport_to(server.url());
  EXPECT_EQ(response_of(transport->call({"GET", "/", "", ""}, kPatience)).status, 200);
  EXPECT_EQ(response_of(transport->call({"POST", "/", "", "{\"name\":\"same\"}"}, kPatience)).body,
            "{\"name\":\"same\"}");
  EXPECT_EQ(posts, 2);
  EXPECT_EQ(server.connections(), 2);
}

TEST(Call, ManyAtOnce) {
  const TestServer server([](const TestRequest& request, TestConnection& connection) {
    std::this_thread::sleep_for(20ms);
    connection.answer(200, request.target);
  });
  const auto transport = transport_to(server.url());
  std::vector<std::future<bool>> callers;
  for (int i = 0; i < 64; ++i) {
    callers.push_back(std::async(std::launch::async, [&, i] {
      bool good = true;
      for (int round = 0; round < 5; ++round) {
        const std::string target = "/" + std::to_string(i) + "/" + std::to_string(round);
        good &= response_of(transport->call({"GET", target, "", ""}, kPatience)).body == target;
      }
      return good;
    }));
  }
  for (auto& caller : callers) EXPECT_TRUE(caller.get());
  EXPECT_LE(server.connections(), 64);
}

TEST(Call, LineBreaksNeverGetIntoTheHead) {
  const TestServer server(
      [](const TestRequest&, TestConnection& connection) { connection.answer(200, ""); });
  const auto transport = transport_to(server.url());
  const HttpRequest bad[] = {{"GET", "/a\r\nX: y", "", ""},
                             {"POST", "/", "text/plain\r\nX: y", "{}"},
                             {"GET\r\nX: y", "/", "", ""}};
  for (const HttpRequest& request : bad) {
    EXPECT_FALSE(failure_of(transport->call(request, kPatience)).maybe_done);
  }
  const auto smuggling = transport_to(server.url(), std::make_unique<StaticToken>("a\r\nX: y"));
  EXPECT_FALSE(failure_of(smuggling->call({"GET", "/", "", ""}, kPatience)).maybe_done);
  EXPECT_TRUE(server.requests().empty());
}

// A token source whose content the test changes.
class TurningToken : public TokenSource {
 public:
  Result<Credential> current() override { return Credential{std::to_string(turn_), {}, {}}; }
  void reject(TimePoint) override { turn_ = std::min(turn_ + 1, last_); }
  explicit TurningToken(int last) : last_(last) {}

 private:
  std::atomic<int> turn_ = 1;
  const int last_;
};

TEST(Unauthorised, IsTriedOnceMoreWithANewerToken) {
  struct Case {
    int last_token;
    std::vector<std::string> sent;
    int status;
  };
  const Case cases[] = {{1, {"Bearer 1"}, 401},
                        {2, {"Bearer 1", "Bearer 2"}, 200},
                        {3, {"Bearer 1", "Bearer 2"}, 200}};
  for (const Case& test : cases) {
    const TestServer server([](const TestRequest& request, TestConnection& connection) {
      connection.answer(request.headers.at("authorization") == "Bearer 2" ? 200 : 401, "");
    });
    const auto transport =
        transport_to(server.url(), std::make_unique<TurningToken>(test.last_token));
    EXPECT_EQ(response_of(transport->call({"POST", "/", "", "{}"}, kPatience)).status, test.status);
    std::vector<std::string> sent;
    for (const TestRequest& request : server.requests()) {
      sent.push_back(request.headers.at("authorization"));
    }
    EXPECT_EQ(sent, test.sent);
  }
}

TEST(Unauthorised, StreamsTooAreTriedOnceMore) {
  const TestServer server([](const TestRequest& request, TestConnection& connection) {
    const bool good = request.headers.at("authorization") == "Bearer 2";
    connection.answer(good ? 200 : 401, good ? "line\n" : "who are you?\n");
  });
  const auto transport = transport_to(server.url(), std::make_unique<TurningToken>(2));
  const Streamed streamed = stream_all(*transport, kPatience);
  EXPECT_EQ(response_of(streamed.result).status, 200);
  EXPECT_THAT(streamed.lines, ElementsAre("line"));
}

TEST(Unauthorised, ATokenThatCannotBeReadIsSaid) {
  const auto transport = transport_to("http://127.0.0.1:1", file_token("/nonexistent/token"));
  const HttpFailure failure = failure_of(transport->call({"GET", "/", "", ""}, kPatience));
  EXPECT_FALSE(failure.maybe_done);
  EXPECT_EQ(failure.message, "cannot open /nonexistent/token: No such file or directory");
}

TEST(Stream, LinesComeWholeHoweverTheyAreCut) {
  const std::string text = "first\n\nthird, longer than the others\nlast without newline";
  for (const std::size_t piece : {1u, 2u, 3u, 7u, 1000u}) {
    const TestServer server([&](const TestRequest&, TestConnection& connection) {
      connection.start_chunked();
      for (std::size_t at = 0; at < text.size(); at += piece) {
        connection.send_chunk(std::string_view(text).substr(at, piece));
      }
      connection.send_chunk("");
    });
    const Streamed streamed = stream_all(*transport_to(server.url()), kPatience);
    EXPECT_EQ(response_of(streamed.result).status, 200);
    EXPECT_EQ(response_of(streamed.result).body, "");
    EXPECT_THAT(streamed.lines,
                ElementsAre("first", "", "third, longer than the others", "last without newline"));
  }
}

TEST(Stream, EachLineComesWhenItIsSent) {
  std::promise<void> seen;
  auto seen_once = seen.get_future().share();
  const TestServer server([&](const TestRequest&, TestConnection& connection) {
    connection.start_chunked();
    connection.send_chunk("one\n");
    EXPECT_EQ(seen_once.wait_for(kPatience), std::future_status::ready)
        << "before the next was sent";
    connection.send_chunk("two\n");
    connection.send_chunk("");
  });
  const auto transport = transport_to(server.url());
  std::vector<std::string> lines;
  transport->stream({"GET", "/", "", ""},
                    [&](std::string_view line) {
                      lines.emplace_back(line);
                      if (lines.size() == 1) seen.set_value();
                      return true;
                    },
                    2 * kPatience, {});
  EXPECT_THAT(lines, ElementsAre("one", "two"));
}

TEST(Stream, ARefusalComesWithItsBody) {
  const TestServer server([](const TestRequest&, TestConnection& connection) {
    connection.answer(410, "{\"reason\":\n\"Expired\"}", "Retry-After: 1\r\n");
  });
  const Streamed streamed = stream_all(*transport_to(server.url()), kPatience);
  EXPECT_EQ(response_of(streamed.result).status, 410);
  EXPECT_EQ(response_of(streamed.result).body, "{\"reason\":\n\"Expired\"}");
  EXPECT_EQ(response_of(streamed.result).retry_after, 1s);
  EXPECT_TRUE(streamed.lines.empty());
}

TEST(Stream, EndsWhenNothingComesAnyMore) {
  for (const bool answering : {true, false}) {
    const TestServer server([&](const TestRequest&, TestConnection& connection) {
      if (answering) connection.start_chunked();
      if (answering) connection.send_chunk("line\n");
      connection.wait_until_left();
    });
    const Streamed streamed = stream_all(*transport_to(server.url()), 200ms);
    EXPECT_EQ(failure_of(streamed.result).message, server.url() + ": nothing came for 0.2 s");
    EXPECT_TRUE(streamed.lines.empty() || answering);
  }
}

// Evaluates the deadline before a block and after it.
class TwoLooksWire : public Wire {
 public:
  explicit TwoLooksWire(std::vector<TimePoint>& looks) : looks_(looks) {}
  HttpResult exchange(Purpose, const HttpRequest&, const Credential&,
                      const Waiting& waiting) override {
    looks_.push_back(waiting.until());
    std::this_thread::sleep_for(1ms);
    waiting.on_block(200, "x");
    looks_.push_back(waiting.until());
    return HttpResponse{200, "", {}, {}};
  }

 private:
  std::vector<TimePoint>& looks_;
};

TEST(Stream, HasItsTimeAnewWithEachBlockAndACallHasNot) {
  std::vector<TimePoint> looks;
  Transport transport("server", std::make_unique<TwoLooksWire>(looks),
                      std::make_unique<StaticToken>(""));
  stream_all(transport, 5s);
  transport.call({"GET", "/", "", ""}, kPatience);
  ASSERT_EQ(looks.size(), 4U);
  EXPECT_LT(looks[0], looks[1]);
  EXPECT_EQ(looks[2], looks[3]);
}

TEST(Stream, ALineWithoutEndIsRefused) {
  const TestServer server([](const TestRequest&, TestConnection& connection) {
    connection.start_chunked();
    const std::string block(32 << 10, 'x');
    while (connection.send_chunk(block)) {
    }
    connection.hang_up();
  });
  const Streamed streamed = stream_all(*transport_to(server.url()), kPatience);
  EXPECT_EQ(failure_of(streamed.result).message,
            server.url() + ": a line of the answer is longer than 4194304 bytes");
}

TEST(Stream, ACutStreamIsAFailureAfterItsWholeLines) {
  const TestServer server([](const TestRequest&, TestConnection& connection) {
    connection.start_chunked();
    connection.send_chunk("whole\nhal");
    connection.hang_up();
  });
  const Streamed streamed = stream_all(*transport_to(server.url()), kPatience);
  EXPECT_THAT(failure_of(streamed.result).message, HasSubstr("the connection broke"));
  EXPECT_THAT(streamed.lines, ElementsAre("whole"));
}

TEST(Stream, EndsWhenItsReaderHasEnough) {
  const TestServer server([](const TestRequest&, TestConnection& connection) {
    connection.start_chunked();
    while (connection.send_chunk("line\n")) std::this_thread::sleep_for(1ms);
    connection.hang_up();
  });
  const auto transport = transport_to(server.url());
  int lines = 0;
  const HttpResult result = transport->stream(
      {"GET", "/", "", ""}, [&](std::string_view) { return ++lines < 3; }, kPatience, {});
  EXPECT_EQ(response_of(result).status, 200);
  EXPECT_EQ(lines, 3);
}

TEST(Stream, StopEndsItWhileTheServerIsSilent) {
  for (const bool answering : {true, false}) {
    std::promise<void> silent;
    const TestServer server([&](const TestRequest&, TestConnection& connection) {
      if (answering) connection.start_chunked();
      if (answering) connection.send_chunk("line\n");
      if (!answering) silent.set_value();
      connection.wait_until_left();
    });
    const auto transport = transport_to(server.url());
    std::stop_source stop;
    std::jthread stopper([&] {
      silent.get_future().wait();
      stop.request_stop();
    });
    const HttpResult result = transport->stream(
        {"GET", "/", "", ""},
        [&](std::string_view) {
          silent.set_value();
          return true;
        },
        kPatience, stop.get_token());
    if (answering) {
      EXPECT_EQ(response_of(result).status, 200);
    } else {
      EXPECT_EQ(failure_of(result).message, server.url() + ": stopped before the server answered");
    }
  }
}

TEST(Stream, TheServerWaitsWhileTheReaderThinks) {
  std::atomic<std::size_t> sent = 0;
  const TestServer server([&](const TestRequest&, TestConnection& connection) {
    connection.start_chunked();
    const std::string block = std::string((32 << 10) - 1, 'x') + "\n";
    while (sent < (256u << 20) && connection.send_chunk(block)) sent += block.size();
    connection.hang_up();
  });
  const auto transport = transport_to(server.url());
  constexpr std::size_t kMost = 16u << 20;  // the kernel's buffers, and more
  std::size_t sent_meanwhile = 0;
  transport->stream({"GET", "/", "", ""},
                    [&](std::string_view) {
                      do {  // until the server stands still
                        sent_meanwhile = sent;
                        std::this_thread::sleep_for(200ms);
                      } while (sent != sent_meanwhile && sent < kMost);
                      sent_meanwhile = sent;
                      return false;
                    },
                    kPatience, {});
  EXPECT_LT(sent_meanwhile, kMost);
}

TEST(Wire, AsksHowLongToWaitBeforeEachBlock) {
  // Takes one block, and the next after that; then no more.
  std::atomic<int> blocks = 0;
  const TestServer server([&](const TestRequest&, TestConnection& connection) {
    connection.start_chunked();
    for (int sent = 1; sent <= 3; ++sent) {
      connection.send_chunk("x");
      for (int i = 0; i < 120'000 && blocks < sent; ++i) std::this_thread::sleep_for(1ms);
    }
    connection.wait_until_left();
  });
  const auto wire =
      make_cpprest_wire(server.url(), "fettle-test/1", std::make_shared<Tls>(TlsConfig{}));
  Waiting waiting;
  waiting.until = [&] {
    return std::chrono::steady_clock::now() + (blocks < 3 ? 2 * kPatience : 0s);
  };
  waiting.timeout_text = "time is up";
  waiting.on_block = [&](int, std::string_view) { return ++blocks <= 3; };
  const HttpResult result =
      (*wire)->exchange(Wire::Purpose::kStream, {"GET", "/", "", ""}, {}, waiting);
  EXPECT_EQ(failure_of(result).message, server.url() + ": time is up");
  EXPECT_EQ(blocks, 3);
}

TEST(Wire, RefusesAddressesItCannotUse) {
  struct Case {
    const char* server;
    const char* message;
  };
  const Case cases[] = {
      {"localhost:6443", "found the server localhost:6443, expected https://HOST:PORT"},
      {"ftp://host", "found the server ftp://host, expected https://HOST:PORT"},
      {"https://", "found the server https://, expected https://HOST:PORT"},
      {"", "found the server , expected https://HOST:PORT"},
      {"https://host?x=y", "found the server https://host?x=y, expected https://HOST:PORT"},
      {"https://[::1]:6443",
       "found the server https://[::1]:6443: IPv6 addresses do not work here; name the host "
       "instead, for example in /etc/hosts, and see that its certificate is for that name"},
  };
  for (const Case& test : cases) {
    const auto made =
        make_cpprest_wire(test.server, "fettle-test/1", std::make_shared<Tls>(TlsConfig{}));
    ASSERT_FALSE(made.ok()) << test.server;
    EXPECT_EQ(made.error().message, test.message);
  }
}

}  // namespace
}  // namespace fettle::kube
