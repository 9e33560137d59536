#include "agents/kubernetes/api/kubeconfig.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLab[] = R"(
apiVersion: v1
kind: Config
current-context: lab
clusters:
- name: lab-cluster
  cluster: {server: "https://lab:6443/", certificate-authority: ca.pem}
users:
- name: ada
  user: {token: secret-of-ada}
contexts:
- name: lab
  context: {cluster: lab-cluster, user: ada, namespace: team}
- name: anonymous
  context: {cluster: lab-cluster}
)";

class KubeconfigTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    return path;
  }
  std::string ErrorOf(const std::string& text, const std::string& context = "") {
    const auto read = ReadKubeconfig({Write("bad", text)}, context);
    return read.ok() ? "none" : std::string(read.status().message());
  }

  hosts::TempDir directory_;
};

TEST_F(KubeconfigTest, TheCurrentContextSaysWhereAndWhoAndInWhichNamespace) {
  Write("ca.pem", "AUTHORITY");
  const auto endpoint = ReadKubeconfig({Write("config", kLab)}, "");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->context, "lab");
  EXPECT_EQ(endpoint->server, "https://lab:6443");
  EXPECT_EQ(endpoint->ca_pem, "AUTHORITY") << "a path is relative to its file";
  EXPECT_EQ(endpoint->ca_file, directory_ / "ca.pem") << "it is read again now and then";
  EXPECT_EQ(endpoint->name_space, "team");
  EXPECT_EQ(endpoint->identity.token, "secret-of-ada");
}

TEST_F(KubeconfigTest, AContextIsChosenByName) {
  Write("ca.pem", "AUTHORITY");
  const auto endpoint = ReadKubeconfig({Write("config", kLab)}, "anonymous");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->name_space, "default");
  EXPECT_EQ(endpoint->identity.token, "");
}

TEST_F(KubeconfigTest, OfSeveralFilesTheFirstThatHasAnEntryCounts) {
  Write("ca.pem", "AUTHORITY");
  const std::string first = Write("first", R"(
users:
- name: ada
  user: {token: newer}
current-context: anonymous
)");
  const auto endpoint =
      ReadKubeconfig({directory_ / "not-there", first, Write("config", kLab)}, "lab");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->identity.token, "newer");
  const auto current = ReadKubeconfig({first, directory_ / "config"}, "");
  ASSERT_TRUE(current.ok()) << current.status();
  EXPECT_EQ(current->context, "anonymous");
}

TEST_F(KubeconfigTest, DataWinsOverFiles) {
  const auto endpoint = ReadKubeconfig({Write("config", R"(
current-context: c
clusters:
- name: c
  cluster: {server: "https://c", certificate-authority: gone, certificate-authority-data: Q0E=,
            tls-server-name: inside, proxy-url: "http://proxy:3128", insecure-skip-tls-verify: true}
users:
- name: u
  user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ, tokenFile: token}
contexts:
- name: c
  context: {cluster: c, user: u}
)")},
                                       "");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->ca_pem, "CA");
  EXPECT_EQ(endpoint->ca_file, "") << "no file is read again";
  EXPECT_EQ(endpoint->identity.certificate_pem, "CERT");
  EXPECT_EQ(endpoint->identity.key_pem, "KEY");
  EXPECT_EQ(endpoint->identity.token_file, directory_ / "token");
  EXPECT_EQ(endpoint->tls_server_name, "inside");
  EXPECT_EQ(endpoint->proxy_url, "http://proxy:3128");
  EXPECT_TRUE(endpoint->skips_tls_verify);
}

TEST_F(KubeconfigTest, APluginIsReadWhole) {
  const auto endpoint = ReadKubeconfig({Write("config", R"(
current-context: c
clusters: [{name: c, cluster: {server: "https://c"}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./plugin
      args: [get-token, --region, here]
      env: [{name: PROFILE, value: lab}]
      installHint: ask ada
      provideClusterInfo: true
contexts: [{name: c, context: {cluster: c, user: u}}]
)")},
                                       "");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const ExecPlugin& plugin = *endpoint->identity.exec;
  EXPECT_EQ(plugin.command, directory_ / "plugin");
  EXPECT_THAT(plugin.args, ElementsAre("get-token", "--region", "here"));
  EXPECT_EQ(plugin.env.at("PROFILE"), "lab");
  EXPECT_EQ(plugin.install_hint, "ask ada");
  EXPECT_TRUE(plugin.wants_cluster);
}

TEST_F(KubeconfigTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(ErrorOf("]"), HasSubstr("is no YAML"));
  EXPECT_THAT(ErrorOf("clusters: 3"), HasSubstr("\"clusters\" is no list"));
  EXPECT_THAT(ErrorOf(kLab, "other"), HasSubstr("no context \"other\"; it has anonymous, lab"));
  EXPECT_THAT(ErrorOf(kLab), HasSubstr("ca.pem"));
  EXPECT_THAT(ErrorOf("contexts: [{name: a, context: {cluster: b}}]"),
              HasSubstr("set kubernetes.context to one of a"));
  EXPECT_THAT(ErrorOf("current-context: a\ncontexts: [{name: a, context: {cluster: b}}]"),
              HasSubstr("no cluster \"b\"; it has none"));
  EXPECT_THAT(ErrorOf("current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n"
                      "clusters: [{name: b, cluster: {server: 'lab:6443'}}]"),
              HasSubstr("server \"lab:6443\" is neither"));
}

TEST_F(KubeconfigTest, AFileThatIsNotThereIsNamed) {
  const auto read = ReadKubeconfig({directory_ / "gone"}, "");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("gone"));
}

}  // namespace
}  // namespace muster::kubernetes
