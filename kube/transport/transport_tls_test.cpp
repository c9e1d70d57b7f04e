// connect(): the certificates it trusts and shows, and its message when a handshake fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/transport/cluster_config.h"
#include "kube/transport/testing/test_directory.h"
#include "kube/transport/testing/test_server.h"

namespace fettle::kube {
namespace {

using namespace std::chrono_literals;  // NOLINT: durations read better so
using testing::HasSubstr;

constexpr auto kPatience = 120s;

void say_hello(const TestRequest&, TestConnection& connection) { connection.answer(200, "hello"); }

// Two authorities that do not trust each other.
class TransportTls : public testing::Test {
 protected:
  ClusterConfig config_for(const TestServer& server) const {
    ClusterConfig config;
    config.server = server.url();
    config.tls.ca.data = ours_.certificate();
    return config;
  }

  // Returns the body of an answer, or the error: "not sent: ..." or "unknown: ...".
  static std::string get(HttpTransport& transport) {
    const HttpResult result = transport.call({"GET", "/", "", ""}, kPatience);
    if (const auto* const response = std::get_if<HttpResponse>(&result)) return response->body;
    const auto& failure = std::get<HttpFailure>(result);
    return (failure.maybe_done ? "unknown: " : "not sent: ") + failure.message;
  }
  static std::string get(const ClusterConfig& config) {
    const auto transport = connect(config, "fettle-test/1");
    return transport.ok() ? get(**transport) : "cannot connect: " + transport.error().message;
  }

  const TestAuthority ours_{"our authority"};
  const TestAuthority theirs_{"another authority"};
  const TestIdentity identity_ = ours_.issue("server", "IP:127.0.0.1,DNS:api.example");
  const TestServer server_{say_hello, TestServer::Tls{identity_, ""}};
  const std::string url_ = server_.url();
};

TEST_F(TransportTls, TrustsTheClustersAuthority) { EXPECT_EQ(get(config_for(server_)), "hello"); }

TEST_F(TransportTls, TrustsNoOther) {
  ClusterConfig config = config_for(server_);
  config.tls.ca.data = theirs_.certificate();
  const std::string refused = "not sent: " + url_ +
                              ": the TLS handshake failed: the server's certificate is not "
                              "trusted: unable to get local issuer certificate";
  EXPECT_EQ(get(config), refused);
  config.tls.ca.data.clear();  // the system's
  EXPECT_EQ(get(config), refused);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(TransportTls, TheSystemsAuthoritiesAreNotTrustedBesideTheClusters) {
  const TestDirectory directory;
  ::setenv("SSL_CERT_FILE", directory.write("system.crt", ours_.certificate()).c_str(), 1);
  ClusterConfig config = config_for(server_);
  config.tls.ca.data.clear();
  EXPECT_EQ(get(config), "hello");
  config.tls.ca.data = theirs_.certificate();
  EXPECT_THAT(get(config), HasSubstr("is not trusted"));
  ::unsetenv("SSL_CERT_FILE");
}

TEST_F(TransportTls, ForgottenSystemAuthoritiesAreNotTrusted) {
  const TestDirectory directory;
  ::setenv("SSL_CERT_FILE", directory.write("system.crt", ours_.certificate()).c_str(), 1);
  forget_system_authorities();
  ClusterConfig config = config_for(server_);
  EXPECT_EQ(get(config), "hello");
  config.tls.ca.data.clear();
  EXPECT_THAT(get(config), HasSubstr("is not trusted"));
  ::unsetenv("SSL_CERT_FILE");
  ::unsetenv("SSL_CERT_DIR");
}

TEST_F(TransportTls, TheCertificateMustBeForTheHost) {
  const TestServer wrong(say_hello, TestServer::Tls{ours_.issue("x", "DNS:api.example"), ""});
  ClusterConfig config = config_for(wrong);
  EXPECT_EQ(get(config), "not sent: " + wrong.url() +
                             ": the TLS handshake failed: the server's certificate is for another "
                             "host name");
  config.tls.server_name = "api.example";
  EXPECT_EQ(get(config), "hello");
  config.tls.server_name = "api.other";
  EXPECT_THAT(get(config), HasSubstr("is for another host name"));
}

TEST_F(TransportTls, InsecureTrustsAnybody) {
  ClusterConfig config = config_for(server_);
  config.tls = TlsConfig();
  config.tls.insecure = true;
  EXPECT_EQ(get(config), "hello");
}

TEST_F(TransportTls, OldVersionsAreRefused) {
  const TestServer old(say_hello, TestServer::Tls{identity_, "", TLS1_1_VERSION});
  EXPECT_EQ(get(config_for(old)),
            "not sent: " + old.url() +
                ": the TLS handshake failed: the server answered with alert protocol version");
  const TestServer fine(say_hello, TestServer::Tls{identity_, "", TLS1_2_VERSION});
  EXPECT_EQ(get(config_for(fine)), "hello");
}

TEST_F(TransportTls, ShowsItsCertificate) {
  const TestServer strict(say_hello, TestServer::Tls{identity_, ours_.certificate()});
  ClusterConfig config = config_for(strict);
  const TestIdentity good = ours_.issue("ada", "");
  config.tls.certificate.data = good.certificate;
  config.tls.key.data = good.key;
  EXPECT_EQ(get(config), "hello");
  config.tls.certificate = {};
  config.tls.key = {};
  EXPECT_THAT(get(config), HasSubstr("the server wants a client certificate"));
  const TestIdentity bad = theirs_.issue("ada", "");
  config.tls.certificate.data = bad.certificate;
  config.tls.key.data = bad.key;
  EXPECT_THAT(get(config), HasSubstr("the server answered with alert unknown CA"));
}

TEST_F(TransportTls, ARotatedAuthorityCountsFromTheNextConnectionOn) {
  const TestDirectory directory;
  const auto hang_up = [](const TestRequest&, TestConnection& connection) {
    connection.answer(200, "hello", "Connection: close\r\n");
    connection.hang_up();
  };
  const TestServer server(hang_up, TestServer::Tls{identity_, ""});
  ClusterConfig config = config_for(server);
  config.tls.ca = {directory.write("ca.crt", ours_.certificate()), ""};
  const auto transport = connect(config, "fettle-test/1");
  EXPECT_EQ(get(**transport), "hello");
  directory.write("ca.crt", theirs_.certificate());
  EXPECT_THAT(get(**transport), HasSubstr("is not trusted"));
  directory.write("ca.crt", theirs_.certificate() + ours_.certificate());
  EXPECT_EQ(get(**transport), "hello");
  // If the file is half-written or missing, its earlier content counts.
  directory.write("ca.crt", "-----BEGIN");
  EXPECT_EQ(get(**transport), "hello");
  std::filesystem::remove(config.tls.ca.file);
  EXPECT_EQ(get(**transport), "hello");
}

TEST_F(TransportTls, BadMaterialIsSaidBeforeAnythingIsSent) {
  const TestIdentity ada = ours_.issue("ada", "");
  const TestIdentity eve = ours_.issue("eve", "");
  struct Case {
    TlsConfig tls;
    std::string message;
  };
  const Case cases[] = {
      {{{"/nonexistent/ca", ""}, {}, {}, "", false},
       "the cluster's CA: cannot open /nonexistent/ca: No such file or directory"},
      {{{"", "nonsense"}, {}, {}, "", false},
       "the certificate-authority data holds no PEM certificate"},
      {{{}, {"", "nonsense"}, {"", ada.key}, "", false},
       "the client certificate holds no PEM certificate"},
      {{{}, {"", ada.certificate}, {"", "nonsense"}, "", false},
       "the client key holds no PEM private key that can be read without a password"},
      {{{}, {"", ada.certificate}, {"", eve.key}, "", false},
       "the client key does not belong to the client certificate: key values mismatch"},
      {{{}, {"/nonexistent/crt", ""}, {"", ada.key}, "", false},
       "the client certificate: cannot open /nonexistent/crt: No such file or directory"},
      {{{}, {}, {}, "a\r\nX: y", false}, "a line break in the user agent or in tls-server-name"},
  };
  for (const Case& test : cases) {
    ClusterConfig config = config_for(server_);
    config.tls = test.tls;
    EXPECT_EQ(get(config), "cannot connect: " + test.message);
  }
}

TEST_F(TransportTls, TokensComeFromTheirFile) {
  const TestDirectory directory;
  ClusterConfig config = config_for(server_);
  config.token = "old";
  config.token_file = directory.write("token", "new\n");
  EXPECT_EQ(get(config), "hello");
  EXPECT_EQ(server_.requests().at(0).headers.at("authorization"), "Bearer new");
  config.token_file += ".missing";
  EXPECT_THAT(get(config), HasSubstr("cannot open"));
}

}  // namespace
}  // namespace fettle::kube
