// The cluster of a kubeconfig, as kubectl prints it, and of a pod. A script stands in for kubectl;
// tests/cluster runs the programs with kubectl itself.
#include "kube/transport/cluster_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "kube/transport/testing/test_directory.h"

namespace fettle::kube {
namespace {

using testing::HasSubstr;

// As kubectl prints one cluster and one user.
Json view(const std::string& cluster, const std::string& user, const std::string& ns = "") {
  const std::string context = ns.empty() ? "" : R"(, "namespace": ")" + ns + "\"";
  return parse_json(R"({"kind": "Config", "apiVersion": "v1", "preferences": {},
    "clusters": [{"name": "big", "cluster": {)" +
                    cluster + R"(}}],
    "users": [{"name": "ada", "user": {)" +
                    user + R"(}}],
    "contexts": [{"name": "work", "context": {"cluster": "big", "user": "ada")" +
                    context + R"(}}],
    "current-context": "work"})")
      .value();
}

constexpr const char* kServer = R"("server": "https://10.0.0.1:6443")";

ClusterConfig chosen(const Json& view) {
  return read_kubectl_view(view, {"/home/ada/.kube/config"}).value();
}

TEST(Kubeconfig, FilesAreBesideTheFile) {
  ClusterConfig expected;
  expected.server = "https://10.0.0.1:6443";
  expected.ns = "team";
  expected.tls.ca.file = "/home/ada/.kube/pki/ca.crt";
  expected.tls.server_name = "api.example";
  expected.tls.certificate.file = "/etc/ada.crt";
  expected.tls.key.data = "KEY";
  const std::string cluster = std::string(kServer) +
                              R"(, "certificate-authority": "pki/ca.crt",
                              "tls-server-name": "api.example")";
  EXPECT_EQ(
      chosen(view(cluster, R"("client-certificate": "/etc/ada.crt", "client-key-data": "S0VZ")",
                  "team")),
      expected);
}

TEST(Kubeconfig, OfSeveralFilesTheFirstBesideWhichItExistsCounts) {
  const TestDirectory first;
  const TestDirectory second;
  const std::string token = second.write("token", "abc");
  const Json robot = view(kServer, R"("tokenFile": "token")");
  const std::vector<std::string> files{first.path() + "/config", second.path() + "/config"};
  EXPECT_EQ(read_kubectl_view(robot, files)->token_file, token);
  EXPECT_EQ(read_kubectl_view(robot, {files[0]})->token_file, first.path() + "/token");
}

TEST(Kubeconfig, TokensAndInlineData) {
  ClusterConfig expected;
  expected.server = "https://small:6443/prefix";
  expected.ns = "default";
  expected.tls.ca.data = "CA";
  expected.token = "abc";
  expected.token_file = "/home/ada/.kube/token";
  EXPECT_EQ(chosen(view(R"("server": "https://small:6443/prefix",
                           "certificate-authority-data": "Q0E=")",
                        R"("token": "abc", "tokenFile": "token")")),
            expected);
}

constexpr const char* kExec = R"("exec": {"apiVersion": "client.authentication.k8s.io/v1",
  "command": "cloud-login", "args": ["--cluster", "big"],
  "env": [{"name": "ZONE", "value": "north"}], "interactiveMode": "Never",
  "provideClusterInfo": true, "installHint": "install cloud-login"})";

TEST(Kubeconfig, ExecPlugins) {
  ExecConfig expected;
  expected.command = "cloud-login";
  expected.arguments = {"--cluster", "big"};
  expected.environment = {{"ZONE", "north"}};
  expected.api_version = "client.authentication.k8s.io/v1";
  expected.install_hint = "install cloud-login";
  expected.interactive = ExecConfig::Interactive::kNever;
  expected.wants_cluster = true;
  EXPECT_EQ(chosen(view(kServer, kExec)).exec, expected);
  const ClusterConfig other =
      chosen(view(kServer, R"("exec": {"apiVersion": "client.authentication.k8s.io/v1beta1",
                                       "command": "bin/login", "interactiveMode": "IfAvailable"})"));
  EXPECT_EQ(other.exec->command, "/home/ada/.kube/bin/login");
  EXPECT_EQ(other.exec->interactive, ExecConfig::Interactive::kIfAvailable);
}

TEST(Kubeconfig, AContextNeedsNoUser) {
  ClusterConfig expected;
  expected.server = "https://open";
  expected.ns = "default";
  expected.tls.insecure = true;
  Json open = view(R"("server": "https://open", "insecure-skip-tls-verify": true)", "");
  open.set("users", Json());  // as kubectl prints it then
  EXPECT_EQ(chosen(open), expected);
}

TEST(Kubeconfig, WhatIsNotSupportedIsSaid) {
  const std::string good = kServer;
  const std::string version = R"("exec": {"apiVersion": "client.authentication.k8s.io/v1")";
  struct Case {
    std::string cluster;
    std::string user;
    std::string message;
  };
  const Case cases[] = {
      {"", "", "the context's cluster names no server"},
      {good + R"(, "certificate-authority-data": "%%")", "",
       "certificate-authority-data is not base64; copy it once more, whole"},
      {good + R"(, "certificate-authority": "ca", "insecure-skip-tls-verify": true)", "",
       "the cluster has both certificate-authority and insecure-skip-tls-verify: true; remove one "
       "of them"},
      {good + R"(, "proxy-url": "http://proxy:3128")", "",
       "the cluster's proxy-url: proxies are not supported; use an address that can be reached "
       "directly, for example through a tunnel"},
      {good, R"("client-certificate": "a")", "the user has client-certificate without client-key"},
      {good, R"("client-key": "a")", "the user has client-key without client-certificate"},
      {good, R"("username": "ada", "password": "x")",
       "the user's username is not supported; use client-certificate, token, tokenFile or exec"},
      {good, R"("as": "admin")",
       "the user's as is not supported; use client-certificate, token, tokenFile or exec"},
      {good, R"("exec": {"command": "x"})",
       "the user's exec.apiVersion: found \"\", expected client.authentication.k8s.io/v1"},
      {good, version + "}", "the user's exec names no command"},
  };
  for (const Case& test : cases) {
    const auto config = read_kubectl_view(view(test.cluster, test.user), {"config"});
    ASSERT_FALSE(config.ok()) << test.message;
    EXPECT_EQ(config.error().message, test.message);
  }
}

// An environment of the given variables.
Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

class LoadClusterConfig : public testing::Test {
 protected:
  LoadClusterConfig() {
    directory_.write("answer", view(kServer, R"("token": "abc")").dump());
    set_kubectl("cat " + directory_.path() + "/answer");
  }

  // A kubectl that notes how it was called, and then runs `script`.
  void set_kubectl(const std::string& script) {
    options_.kubectl =
        directory_.write("kubectl", "#!/bin/sh\necho \"$KUBECONFIG $*\" > " + directory_.path() +
                                        "/call\n" + script + "\n");
    std::filesystem::permissions(options_.kubectl, std::filesystem::perms::owner_all);
  }
  std::string call() const { return read_file(directory_.path() + "/call").value(); }
  std::string server(const std::string& list) const {
    const auto config = load_cluster_config(
        options_, environment({{"HOME", directory_.path()}, {"KUBECONFIG", list}}));
    return config.ok() ? config->server : config.error().message;
  }

  const TestDirectory directory_;
  ConfigOptions options_;
};

TEST_F(LoadClusterConfig, AsksKubectlWhereKubectlLooks) {
  constexpr const char* kView = " config view --raw --minify --output=json";
  const std::string one = directory_.write("one", "");
  const std::string two = directory_.write("two", "");
  make_directories(directory_.path() + "/.kube").value();
  const std::string home = directory_.write(".kube/config", "");
  const std::string none = directory_.path() + "/none";
  EXPECT_EQ(server(""), "https://10.0.0.1:6443");
  EXPECT_EQ(call(), home + kView + "\n");
  EXPECT_EQ(server(none + ":" + two + "::" + one), "https://10.0.0.1:6443");
  EXPECT_EQ(call(), two + ":" + one + kView + "\n");
  options_.kubeconfig = one;
  options_.context = "work";
  EXPECT_EQ(server(two), "https://10.0.0.1:6443");
  EXPECT_EQ(call(), one + kView + " --kubeconfig=" + one + " --context=work\n");
  options_.kubeconfig = none;
  EXPECT_EQ(server(two), "there is no kubeconfig " + none);
}

TEST_F(LoadClusterConfig, WithoutAnyClusterSaysWhatToDo) {
  EXPECT_EQ(server(""),
            "no cluster is known: there is no kubeconfig ($KUBECONFIG, else ~/.kube/config) and "
            "this is no pod; name one with --kubeconfig FILE");
}

TEST_F(LoadClusterConfig, WithoutKubectlSaysWhatToDo) {
  options_.kubectl = "/nonexistent/kubectl";
  const std::string file = directory_.write("one", "");
  EXPECT_EQ(server(file),
            "there is no kubectl on PATH, which reads the kubeconfig (" + file +
                "): install it, or run in a pod, where the service account is enough");
}

TEST_F(LoadClusterConfig, WhatKubectlSaysIsPassedOn) {
  const std::string file = directory_.write("one", "");
  set_kubectl("echo 'error: cannot locate context nope' >&2; exit 1");
  EXPECT_EQ(server(file),
            "kubectl cannot choose a cluster from the kubeconfig (" + file +
                "): error: cannot locate context nope; `kubectl config get-contexts` lists what "
                "there is");
  set_kubectl("echo hello");
  EXPECT_THAT(server(file), HasSubstr("kubectl config view: "));
}

TEST_F(LoadClusterConfig, ProgramsAreRunOnlyForPeople) {
  const std::string file = directory_.write("config", "");
  directory_.write("answer", view(kServer, kExec).dump());
  options_.kubeconfig = file;
  EXPECT_EQ(server(""),
            file +
                ": the user's credentials come from the program cloud-login (exec), which is run "
                "for people only; use a token, tokenFile or client certificate here");
  options_.allow_exec = true;
  EXPECT_EQ(server(""), "https://10.0.0.1:6443");
}

TEST(InCluster, UsesTheServiceAccount) {
  const TestDirectory directory;
  directory.write("namespace", "team\n");
  ClusterConfig expected;
  expected.server = "https://10.96.0.1:443";
  expected.ns = "team";
  expected.tls.ca.file = directory.path() + "/ca.crt";
  expected.token_file = directory.path() + "/token";
  const auto pod =
      environment({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
  EXPECT_EQ(in_cluster_config(pod, directory.path()).value(), expected);
}

TEST(InCluster, UsesANameInPlaceOfAnIpv6Address) {
  const TestDirectory directory;
  directory.write("namespace", "team");
  const auto pod =
      environment({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
  EXPECT_EQ(in_cluster_config(pod, directory.path())->server, "https://kubernetes.default.svc:443");
}

TEST(InCluster, SaysWhatIsMissing) {
  EXPECT_EQ(in_cluster_config(environment({})).error().message,
            "not in a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set");
  const auto pod =
      environment({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
  EXPECT_EQ(in_cluster_config(pod, "/nonexistent").error().message,
            "cannot open /nonexistent/namespace: No such file or directory; does the pod have a "
            "service account token (automountServiceAccountToken, or a projected volume)?");
}

}  // namespace
}  // namespace fettle::kube
