// Tests the API client against a real API server: TLS and HTTP/2, who the client is, and what it is
// told.
#include "agents/kubernetes/api/api.h"

#include <sys/stat.h>

#include <atomic>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/kubernetes/least_rights.h"
#include "tests/integration/kubernetes/relay.h"
#include "tests/integration/kubernetes/test_cluster.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;

constexpr char kWhoAmI[] = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

// Takes a stream's bytes and keeps none.
class Drain : public HttpSink {
 public:
  explicit Drain(std::atomic<int>* answered) : answered_(*answered) {}
  void OnStatus(int status, const std::map<std::string, std::string>&) override {
    if (status == 200) ++answered_;
  }
  bool OnBytes(std::string_view) override { return true; }
  void OnEnd(const absl::Status&) override {}

 private:
  std::atomic<int>& answered_;
};

class KubernetesApiTest : public ::testing::Test {
 protected:
  static Endpoint Admin() { return SharedCluster().endpoint(); }
  absl::StatusOr<ApiAnswer> Version(const Endpoint& endpoint) {
    return Api(endpoint, &host_).Call({.path = "/version"});
  }
  // Returns the user for whom the server takes the caller, or its refusal.
  static std::string NameAt(Api& api) {
    const auto answer = api.Call({.method = "POST", .path = kWhoAmI, .body = Json::object()});
    if (!answer.ok()) return answer.status().ToString();
    if (!answer->ok()) return RefusalOf(*answer, "who am I").ToString();
    return TextAt(answer->body, "status/userInfo/username");
  }
  // Returns the administrator's server without its credentials.
  static Endpoint Nobody() {
    Endpoint endpoint = Admin();
    endpoint.identity = {};
    return endpoint;
  }
  std::string File(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }

  // Puts its certificate into the file of that name and its key into NAME.key; another one signs
  // it, or it itself.
  void MakeCertificate(const std::string& name, const std::string& subject,
                       const std::string& authority = "") {
    hosts::Command command;
    command.argv = {"openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                    "-nodes",
                    "-days",
                    "1",
                    "-subj",
                    subject,
                    "-keyout",
                    directory_ / (name + ".key"),
                    "-out",
                    directory_ / name};
    if (!authority.empty()) {
      for (const std::string& word : {std::string("-CA"), directory_ / authority,
                                      std::string("-CAkey"), directory_ / (authority + ".key")}) {
        command.argv.push_back(word);
      }
    }
    const absl::StatusOr<hosts::CommandResult> made = host_.Run(command);
    ASSERT_TRUE(made.ok() && made->ok()) << (made.ok() ? made->stderr_data : "no openssl");
  }

  hosts::TempDir directory_;
  hosts::LocalHost host_;
};

TEST_F(KubernetesApiTest, FiftyStreamsAndTheCallsBesideThemShareOneConnection) {
  Relay relay(Admin().server);
  Endpoint endpoint = Admin();
  endpoint.server = relay.url();
  std::atomic<int> answered = 0;
  Api api(endpoint, &host_);
  ASSERT_TRUE(api.Call({.path = "/version"}).ok());
  const std::string path = "/api/v1/configmaps?watch=1&timeoutSeconds=600";
  for (int i = 0; i < 50; ++i) {
    const auto id = api.Stream(path, absl::InfiniteDuration(), std::make_unique<Drain>(&answered));
    ASSERT_TRUE(id.ok()) << id.status();
  }
  WaitFor("all streams are open", [&] { return answered == 50; });
  ASSERT_TRUE(api.Call({.path = "/version"}).ok());
  EXPECT_EQ(relay.connections(), 1)
      << "only HTTP/2 does this, and over TLS is how both agree on it";
}

TEST_F(KubernetesApiTest, ATokenIsReadAgainFromItsFileOnceTheServerNoLongerTakesIt) {
  Endpoint endpoint = Nobody();
  endpoint.identity.token_file = File("token", "a.token.of-another-time");
  Api api(endpoint, &host_);
  EXPECT_THAT(NameAt(api), HasSubstr("answered 401"));
  EXPECT_EQ(api.Calls()["POST"], 2u) << "asked once more";
  File("token", LeastRightsToken(SharedCluster(), SharedCluster().MakeNamespace()) + "\n");
  EXPECT_EQ(NameAt(api), "system:serviceaccount:muster:muster-agent");
  EXPECT_EQ(api.Calls()["POST"], 4u);
}

TEST_F(KubernetesApiTest, ATokenThatIsRevokedWhileItIsUsedIsRenewedWithoutAnybodySeeing) {
  TestCluster& cluster = SharedCluster();
  LeastRightsToken(cluster, cluster.MakeNamespace());
  const std::string account = "/api/v1/namespaces/muster/serviceaccounts/muster-agent/token";
  const std::string secrets = "/api/v1/namespaces/muster/secrets";
  const Json anchor = cluster.MustDo("POST", secrets, {{"metadata", {{"name", "anchor"}}}});
  const Json bound = {{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"name", "anchor"},
                      {"uid", TextAt(anchor, "metadata/uid")}};
  const Json first = cluster.MustDo("POST", account, {{"spec", {{"boundObjectRef", bound}}}});
  const Json second = cluster.MustDo("POST", account, {{"spec", Json::object()}});
  Endpoint endpoint = Nobody();
  endpoint.identity.token_file = File("token", TextAt(first, "status/token"));
  Api api(endpoint, &host_);
  EXPECT_EQ(NameAt(api), "system:serviceaccount:muster:muster-agent");
  File("token", TextAt(second, "status/token"));
  // A token ends with what it is bound to, once the server no longer remembers that it was good.
  cluster.MustDo("DELETE", secrets + "/anchor");
  uint64_t calls = 1;
  WaitFor("the server has refused the first token", [&] {
    EXPECT_EQ(NameAt(api), "system:serviceaccount:muster:muster-agent");
    return api.Calls()["POST"] > ++calls;
  });
}

TEST_F(KubernetesApiTest, ATokenThatIsRefusedDoesNotSpoilTheCallsThatFollow) {
  // The server ends a connection on which it has refused a token, once all else on it has ended.
  Endpoint endpoint = Nobody();
  endpoint.identity.token_file = File("token", Admin().identity.token);
  std::atomic<int> answered = 0;
  Api api(endpoint, &host_);
  const auto id = api.Stream("/api/v1/configmaps?watch=1&timeoutSeconds=600",
                             absl::InfiniteDuration(), std::make_unique<Drain>(&answered));
  ASSERT_TRUE(id.ok()) << id.status();
  WaitFor("the watch is open", [&] { return answered == 1; });
  for (int i = 0; i < 10; ++i) {
    File("token", "refused");
    api.RenewCredentials();
    EXPECT_THAT(NameAt(api), HasSubstr("answered 401"));
    File("token", Admin().identity.token);
    EXPECT_EQ(NameAt(api), "admin");
  }
}

TEST_F(KubernetesApiTest, AServerThatSharesItsLoadByEndingConnectionsIsNotNoticed) {
  TestCluster cluster({.nodes = 0,
                       .gpus = 0,
                       // This is the most that the server takes; a server among several has a
                       // thousandth.
                       .more = {"-arg", "kube-apiserver=--goaway-chance=0.02"}});
  Relay relay(cluster.endpoint().server);
  Endpoint endpoint = cluster.endpoint();
  endpoint.server = relay.url();
  Api api(endpoint, &host_);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(NameAt(api), "admin");
    const auto read = api.Call({.path = "/api/v1/namespaces/default"});
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->ok());
  }
  EXPECT_GT(relay.connections(), 3) << "it has ended some";
}

TEST_F(KubernetesApiTest, AConnectionThatHasGoneSilentHoldsUpNoFurtherCall) {
  Relay relay(Admin().server);
  Endpoint endpoint = Admin();
  endpoint.server = relay.url();
  Api api(endpoint, &host_);
  ASSERT_TRUE(api.Call({.path = "/version"}).ok());
  relay.Swallow();
  const auto lost = api.Call({.path = "/version", .timeout = absl::Seconds(1)});
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kDeadlineExceeded) << lost.status();
  const auto answer = api.Call({.path = "/version"});
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(KubernetesApiTest, ACredentialsPluginIsAskedAgainWhenWhatItGaveHasEnded) {
  const std::string token = File("token", Admin().identity.token);
  const std::string plugin =
      File("plugin",
           "#!/bin/sh\necho >>" + (directory_ / "calls") +
               "\nprintf "
               "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
               "\"status\":{\"token\":\"%s\",\"expirationTimestamp\":\"%s\"}}' \"$(cat " +
               token + ")\" \"$EXPIRY\"\n");
  ASSERT_EQ(chmod(plugin.c_str(), 0700), 0);
  Endpoint endpoint = Nobody();
  endpoint.identity.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                                      .command = plugin,
                                      .args = {},
                                      .env = {{"EXPIRY", "2000-01-01T00:00:00Z"}},
                                      .install_hint = "",
                                      .wants_cluster = false};
  Api expired(endpoint, &host_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(NameAt(expired), "admin");
  EXPECT_EQ(ReadWhole(directory_ / "calls"), "\n\n\n") << "what has ended is not used again";
  endpoint.identity.exec->env["EXPIRY"] = "2100-01-01T00:00:00Z";
  Api lasting(endpoint, &host_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(NameAt(lasting), "admin");
  EXPECT_EQ(ReadWhole(directory_ / "calls"), "\n\n\n\n");
}

TEST_F(KubernetesApiTest, AClientCertificateSaysWhoAsksAndOneOfAnotherAuthorityNothing) {
  MakeCertificate("ca", "/CN=clients");
  MakeCertificate("alice", "/O=system:masters/CN=alice", "ca");
  MakeCertificate("mallory", "/O=system:masters/CN=mallory");
  TestCluster cluster({.nodes = 0,
                       .gpus = 0,
                       .more = {"-arg", "kube-apiserver=--client-ca-file=" + (directory_ / "ca")}});
  const auto name_of = [&](const std::string& who) {
    Endpoint endpoint = cluster.endpoint();
    endpoint.identity = {};
    endpoint.identity.certificate_pem = ReadWhole(directory_ / who);
    endpoint.identity.key_pem = ReadWhole(directory_ / (who + ".key"));
    Api api(endpoint, &host_);
    return NameAt(api);
  };
  EXPECT_EQ(name_of("alice"), "alice");
  EXPECT_THAT(name_of("mallory"), HasSubstr("answered 401"));
}

TEST_F(KubernetesApiTest, AServerWithACertificateOfAnotherAuthorityIsRefused) {
  Endpoint endpoint = Admin();
  MakeCertificate("ca", "/CN=another");
  endpoint.ca_file.clear();
  endpoint.ca_pem = ReadWhole(directory_ / "ca");
  const absl::Status refused = Version(endpoint).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("certificate-authority"));
  endpoint.ca_pem.clear();
  EXPECT_EQ(Version(endpoint).status().code(), absl::StatusCode::kFailedPrecondition)
      << "this machine's authorities do not know it either";
  endpoint.skips_tls_verify = true;
  EXPECT_TRUE(Version(endpoint).ok()) << "as the operator wants it";
}

TEST_F(KubernetesApiTest, TheCertificateIsCheckedForTheNameThatTheKubeconfigSays) {
  Endpoint endpoint = Admin();
  endpoint.tls_server_name = "kubernetes.default.svc";
  EXPECT_TRUE(Version(endpoint).ok()) << Version(endpoint).status();
  endpoint.tls_server_name = "elsewhere.example";
  const absl::Status refused = Version(endpoint).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("elsewhere.example"));
}

TEST_F(KubernetesApiTest, AWrongEndpointIsTold) {
  Endpoint plain = Admin();
  plain.server.replace(0, 5, "http");
  const auto answer = Version(plain);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(RefusalOf(*answer, "version").ToString(),
              HasSubstr("Client sent an HTTP request to an HTTPS server"));

  Endpoint nowhere = Admin();
  nowhere.server = "https://127.0.0.1:1";
  EXPECT_EQ(Version(nowhere).status().code(), absl::StatusCode::kUnavailable);
  nowhere.server = "https://no-such-host.invalid:6443";
  EXPECT_EQ(Version(nowhere).status().code(), absl::StatusCode::kUnavailable);

  Relay relay(Admin().server);
  relay.Cut();
  Endpoint behind_nothing = Admin();
  behind_nothing.server = relay.url();
  const absl::Status hung_up = Version(behind_nothing).status();
  EXPECT_EQ(hung_up.code(), absl::StatusCode::kUnavailable) << hung_up;
}

TEST_F(KubernetesApiTest, WhatAdmissionSaysReachesTheUserWhole) {
  TestCluster& cluster = SharedCluster();
  const std::string name_space = cluster.MakeNamespace();
  const std::string words =
      "\"quoted\", <b>&amp;</b>, äöü 漢字, " + std::string(3000, 'x') + " the end";
  const std::string group = "/apis/admissionregistration.k8s.io/v1/";
  const Json rule = {{"apiGroups", {""}},
                     {"apiVersions", {"v1"}},
                     {"operations", {"CREATE"}},
                     {"resources", {"configmaps"}}};
  const Json only_here = {{"matchLabels", {{"kubernetes.io/metadata.name", name_space}}}};
  cluster.MustDo("POST", group + "validatingadmissionpolicies",
                 {{"metadata", {{"name", "never"}}},
                  {"spec",
                   {{"matchConstraints", {{"resourceRules", {rule}}}},
                    {"validations", {{{"expression", "false"}, {"message", words}}}}}}});
  cluster.MustDo("POST", group + "validatingadmissionpolicybindings",
                 {{"metadata", {{"name", "never"}}},
                  {"spec",
                   {{"policyName", "never"},
                    {"validationActions", {"Deny"}},
                    {"matchResources", {{"namespaceSelector", only_here}}}}}});
  std::string told;
  // A policy counts a moment after it was made.
  WaitFor("the policy refuses", [&] {
    const ApiAnswer answer =
        cluster.Admin("POST", "/api/v1/namespaces/" + name_space + "/configmaps",
                      {{"metadata", {{"generateName", "a-"}}}});
    told = answer.ok() ? "" : RefusalOf(answer, "create").ToString();
    return !answer.ok();
  });
  EXPECT_THAT(told, HasSubstr(words));
}

TEST_F(KubernetesApiTest, ANamespaceThatIsNotThereOrIsEndingIsNamed) {
  TestCluster& cluster = SharedCluster();
  const Json job = {{"metadata", {{"name", "a"}}}};
  const ApiAnswer missing = cluster.Admin("POST", "/api/v1/namespaces/nowhere/configmaps", job);
  EXPECT_EQ(RefusalOf(missing, "create").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.message, HasSubstr("namespaces \"nowhere\" not found"));

  const std::string ending = cluster.MakeNamespace();
  const std::string configs = "/api/v1/namespaces/" + ending + "/configmaps";
  cluster.MustDo("POST", configs,
                 {{"metadata", {{"name", "stays"}, {"finalizers", {"example.org/test"}}}}});
  cluster.MustDo("DELETE", "/api/v1/namespaces/" + ending);
  const ApiAnswer refused = cluster.Admin("POST", configs, job);
  EXPECT_EQ(RefusalOf(refused, "create").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message, HasSubstr("because it is being terminated"));
  cluster.MustDo("PATCH", configs + "/stays", {{"metadata", {{"finalizers", nullptr}}}});
}

}  // namespace
}  // namespace muster::kubernetes
