// Kubeconfig files: the configuration from each, and the errors of invalid files.
#include "kube/transport/kubeconfig.h"

#include <gtest/gtest.h>

#include "kube/transport/testing/test_directory.h"

namespace fettle::kube {
namespace {

constexpr const char* kFile = "/home/ada/.kube/config";

constexpr const char* kWhole = R"(
apiVersion: v1
kind: Config
preferences: {}
current-context: work
clusters:
- name: big
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: pki/ca.crt
    tls-server-name: api.example
- name: small
  cluster:
    server: https://small:6443/prefix
    certificate-authority-data: Q0E=
- name: open
  cluster: {server: "https://open", insecure-skip-tls-verify: true}
users:
- name: ada
  user: {client-certificate: /etc/ada.crt, client-key-data: S0VZ}
- name: robot
  user: {token: abc, tokenFile: token}
- name: cloud
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: cloud-login
      args: [--cluster, big]
      env: [{name: ZONE, value: north}]
      interactiveMode: Never
      provideClusterInfo: true
      installHint: install cloud-login
- name: beside
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: bin/login}
contexts:
- {name: work, context: {cluster: big, user: ada, namespace: team}}
- {name: robot, context: {cluster: small, user: robot}}
- {name: cloud, context: {cluster: big, user: cloud}}
- {name: beside, context: {cluster: open, user: beside}}
- {name: nobody, context: {cluster: open}}
- {name: lost, context: {cluster: bog, user: ada}}
- {name: stranger, context: {cluster: big, user: adda}}
)";

ClusterConfig chosen(const std::string& context) {
  const Result<Kubeconfig> parsed = parse_kubeconfig(kWhole, kFile);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return choose_context(parsed.value(), context).value();
}

TEST(Kubeconfig, FilesAreBesideTheFile) {
  ClusterConfig expected;
  expected.server = "https://10.0.0.1:6443";
  expected.ns = "team";
  expected.tls.ca.file = "/home/ada/.kube/pki/ca.crt";
  expected.tls.server_name = "api.example";
  expected.tls.certificate.file = "/etc/ada.crt";
  expected.tls.key.data = "KEY";
  EXPECT_EQ(chosen(""), expected);
  EXPECT_EQ(chosen("work"), expected);
}

TEST(Kubeconfig, TokensAndInlineData) {
  ClusterConfig expected;
  expected.server = "https://small:6443/prefix";
  expected.ns = "default";
  expected.tls.ca.data = "CA";
  expected.token = "abc";
  expected.token_file = "/home/ada/.kube/token";
  EXPECT_EQ(chosen("robot"), expected);
}

TEST(Kubeconfig, ExecPlugins) {
  ExecConfig expected;
  expected.command = "cloud-login";
  expected.arguments = {"--cluster", "big"};
  expected.environment = {{"ZONE", "north"}};
  expected.api_version = "client.authentication.k8s.io/v1";
  expected.install_hint = "install cloud-login";
  expected.interactive = ExecConfig::Interactive::kNever;
  expected.wants_cluster = true;
  EXPECT_EQ(chosen("cloud").exec, expected);
  EXPECT_EQ(chosen("beside").exec->command, "/home/ada/.kube/bin/login");
}

TEST(Kubeconfig, AContextNeedsNoUser) {
  ClusterConfig expected;
  expected.server = "https://open";
  expected.ns = "default";
  expected.tls.insecure = true;
  EXPECT_EQ(chosen("nobody"), expected);
}

TEST(Kubeconfig, TheFirstOfSeveralFilesWins) {
  const auto first = parse_kubeconfig(
      "clusters: [{name: a, cluster: {server: https://first}}]\n"
      "contexts: [{name: one, context: {cluster: a}}]\n",
      "/first/config");
  const auto second = parse_kubeconfig(
      "current-context: two\n"
      "clusters: [{name: a, cluster: {server: https://second}}, {name: b, cluster: {server: "
      "https://b, certificate-authority: ca}}]\n"
      "contexts: [{name: two, context: {cluster: b}}]\n",
      "/second/config");
  const Kubeconfig merged = merge(first.value(), second.value());
  EXPECT_EQ(choose_context(merged, "")->server, "https://b");
  EXPECT_EQ(choose_context(merged, "")->tls.ca.file, "/second/ca");
  EXPECT_EQ(choose_context(merged, "one")->server, "https://first");
  EXPECT_EQ(choose_context(merged, "three").error().message,
            "/first/config, /second/config: the context \"three\" is not there");
}

// Returns the error of `text` when its current-context is used; "" if it is valid.
std::string complaint(const std::string& text, const std::string& context = "") {
  const Result<Kubeconfig> parsed = parse_kubeconfig(text, "config");
  if (!parsed.ok()) return parsed.error().message;
  const Result<ClusterConfig> config = choose_context(*parsed, context);
  return config.ok() ? "" : config.error().message;
}

// One cluster, user and context, in flow style.
std::string with(const std::string& cluster, const std::string& user) {
  return "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
         "clusters: [{name: k, cluster: {" +
         cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

TEST(Kubeconfig, ProblemsAreSaidWithTheirPlace) {
  const std::string good = "server: https://h";
  struct Case {
    std::string text;
    std::string message;
  };
  const Case cases[] = {
      {with(good, ""), ""},
      {"",
       "config: there is no current-context; choose one with `kubectl config use-context NAME`"},
      {"a: [", "config:1:1: is not YAML: end of sequence flow not found"},
      {"- a\n", "config: expected one YAML document, of kind Config"},
      {"a: 1\n---\nb: 1\n", "config: expected one YAML document, of kind Config"},
      {"kind: Pod\n", "config:1:1: kind: found Pod, expected Config; this is no kubeconfig"},
      {"current-context: 3\n", "config:1:1: current-context: found a number, expected a string"},
      {"clusters: {a: b}\n", "config:1:1: clusters: found a map, expected a list"},
      {with("server: [x]", ""),
       "config:3:32: clusters[0].cluster.server: found a list, expected a string"},
      {with("", ""), "config: clusters[0].cluster: names no server"},
      {with(good + ", insecure-skip-tls-verify: \"yes\"", ""),
       "config:3:51: clusters[0].cluster.insecure-skip-tls-verify: found a string, expected true "
       "or false"},
      {with(good + ", certificate-authority-data: \"%%\"", ""),
       "config:3:51: clusters[0].cluster.certificate-authority-data: is not base64; copy it once "
       "more, whole"},
      {with(good + ", certificate-authority: ca, insecure-skip-tls-verify: true", ""),
       "config: clusters[0].cluster: found both certificate-authority and "
       "insecure-skip-tls-verify: true; remove one of them"},
      {with(good + ", proxy-url: http://proxy:3128", ""),
       "config: clusters[0].cluster.proxy-url: proxies are not supported; use an address that can "
       "be reached directly, for example through a tunnel"},
      {with(good, "client-certificate: a"),
       "config: users[0].user: found client-certificate without client-key"},
      {with(good, "client-key: a"),
       "config: users[0].user: found client-key without client-certificate"},
      {with(good, "username: ada, password: x"),
       "config: users[0].user.password: is not supported; use client-certificate, token, "
       "tokenFile or exec"},
      {with(good, "as: admin"),
       "config: users[0].user.as: is not supported; use client-certificate, token, tokenFile or "
       "exec"},
      {with(good, "exec: {command: x}"),
       "config:4:26: users[0].user.exec.apiVersion: found \"\", expected "
       "client.authentication.k8s.io/v1"},
      {with(good, "exec: {apiVersion: client.authentication.k8s.io/v1}"),
       "config:4:26: users[0].user.exec: names no command"},
      {with(good, "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, args: [1]}"),
       "config:4:97: users[0].user.exec.args[0]: found a number, expected a string"},
      {with(good, "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [{}]}"),
       "config:4:96: users[0].user.exec.env[0]: expected a name and a value"},
      {with(good,
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: a}"),
       "config:4:90: users[0].user.exec.interactiveMode: found \"a\", expected Never, IfAvailable "
       "or Always"},
      {"clusters: [{name: a}, {name: a}]\n",
       "config:1:24: clusters[1].name: found the name \"a\" a second time"},
      {"a: 1\na: 2\n",
       "config:2:1: found the field \"a\" a second time in one map; remove one of them"},
  };
  for (const Case& test : cases) EXPECT_EQ(complaint(test.text), test.message) << test.text;
  EXPECT_EQ(complaint(kWhole, "wrok"),
            "config: the context \"wrok\" is not there; did you mean work?");
  EXPECT_EQ(complaint(kWhole, "lost"),
            "config: contexts[5].context.cluster: the cluster \"bog\" is not there; did you mean "
            "big?");
  EXPECT_EQ(complaint(kWhole, "stranger"),
            "config: contexts[6].context.user: the user \"adda\" is not there; did you mean ada?");
}

TEST(Kubeconfig, SizeAndDepthAreBounded) {
  EXPECT_EQ(complaint(std::string(kMaxKubeconfigBytes + 1, ' ')),
            "config: is larger than 4194304 bytes");
  std::string deep = "a: ";
  for (int i = 0; i < 1000; ++i) deep += "[";
  EXPECT_EQ(complaint(deep), "config:1:36: nested deeper than 64 levels");
}

// An environment of the given variables.
Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string naming(const std::string& context, const std::string& server) {
  return "current-context: " + context + "\ncontexts: [{name: " + context +
         ", context: {cluster: k}}]\nclusters: [{name: k, cluster: {server: " + server + "}}]\n";
}

TEST(LoadClusterConfig, LooksWhereKubectlLooks) {
  const TestDirectory directory;
  const std::string one = directory.write("one", naming("a", "https://one"));
  const std::string two = directory.write("two", naming("b", "https://two"));
  make_directories(directory.path() + "/.kube").value();
  directory.write(".kube/config", naming("h", "https://home"));
  const std::string none = directory.path() + "/none";
  const auto server = [&](const ConfigOptions& options, const std::string& list) {
    const auto config = load_cluster_config(
        options, environment({{"HOME", directory.path()}, {"KUBECONFIG", list}}));
    return config.ok() ? config->server : config.error().message;
  };
  EXPECT_EQ(server({}, ""), "https://home");
  EXPECT_EQ(server({}, none + ":" + two + "::" + one), "https://two");
  EXPECT_EQ(server({"", "a", false}, two + ":" + one), "https://two");  // the cluster k is two's
  EXPECT_EQ(server({one, "", false}, two), "https://one");
  EXPECT_EQ(server({none, "", false}, two), "cannot open " + none + ": No such file or directory");
}

TEST(LoadClusterConfig, WithoutAnyClusterAdvisesTheUser) {
  EXPECT_EQ(
      load_cluster_config({}, environment({{"HOME", "/nonexistent"}})).error().message,
      "no cluster is known: there is no kubeconfig (/nonexistent/.kube/config) and this is no "
      "pod; name one with --kubeconfig FILE");
}

TEST(LoadClusterConfig, ProgramsAreRunOnlyForPeople) {
  const TestDirectory directory;
  const std::string file = directory.write(
      "config",
      with("server: https://h", "exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"));
  EXPECT_TRUE(load_cluster_config({file, "", true}, environment({})).ok());
  EXPECT_EQ(load_cluster_config({file, "", false}, environment({})).error().message,
            file +
                ": the user's credentials come from the program x (exec), which is run for "
                "people only; use a token, tokenFile or client certificate here");
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

TEST(InCluster, NamesMissingParts) {
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
