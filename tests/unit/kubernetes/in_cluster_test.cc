// Tests the directory and the variables that Kubernetes gives an agent in a pod.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "agents/hosts/local_host.h"
#include "agents/kubernetes/api/credentials.h"
#include "agents/kubernetes/api/endpoint.h"
#include "agents/kubernetes/api/kubeconfig.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::kubernetes {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kHost[] = "KUBERNETES_SERVICE_HOST";
constexpr char kPort[] = "KUBERNETES_SERVICE_PORT";

class InClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Set(kHost, "10.96.0.1");
    Set(kPort, "443");
    Mount({{"ca.crt", "AUTHORITY\n"}, {"token", "first"}, {"namespace", "team"}});
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      if (value.has_value()) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }

  // A null `value` means that it is not set.
  void Set(const std::string& name, const char* value) {
    const char* before = std::getenv(name.c_str());
    before_.try_emplace(name,
                        before == nullptr ? std::nullopt : std::optional<std::string>(before));
    if (value == nullptr) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value, 1);
    }
  }

  // Mounts files as the kubelet does: they are links through "..data", which is replaced at one
  // stroke.
  void Mount(const std::map<std::string, std::string>& files) {
    const std::string version = "..version" + std::to_string(++versions_);
    fs::create_directory(directory_ / version);
    for (const auto& [name, text] : files) {
      std::ofstream(directory_ / version + "/" + name) << text;
      if (!fs::is_symlink(directory_ / name))
        fs::create_symlink("..data/" + name, directory_ / name);
    }
    fs::create_symlink(version, directory_ / "..data_tmp");
    fs::rename(directory_ / "..data_tmp", directory_ / "..data");
  }

  absl::StatusOr<Endpoint> Find() const { return InClusterEndpoint(directory_.path()); }

  hosts::TempDir directory_;
  hosts::LocalHost host_;
  int versions_ = 0;
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(InClusterTest, ThePodsDirectoryAndVariablesSayWhereAndWhoAndInWhichNamespace) {
  const absl::StatusOr<Endpoint> endpoint = Find();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->server, "https://10.96.0.1:443");
  EXPECT_EQ(endpoint->ca_pem, "AUTHORITY\n");
  EXPECT_EQ(endpoint->name_space, "team");
  EXPECT_EQ(endpoint->context, "") << "that is the pod's own account";
  EXPECT_FALSE(endpoint->skips_tls_verify);
  EXPECT_TRUE(endpoint->identity.IsOfFiles());
  Credentials credentials(*endpoint, &host_);
  EXPECT_EQ(credentials.Get()->authorization, "Bearer first");
}

TEST_F(InClusterTest, AnAddressOfIpv6StandsInBrackets) {
  Set(kHost, "fd00:10:96::1");
  Set(kPort, "6443");
  EXPECT_EQ(Find()->server, "https://[fd00:10:96::1]:6443");
}

TEST_F(InClusterTest, ATokenThatTheKubeletHasRenewedIsUsedOnceItsMinuteIsOver) {
  Credentials credentials(*Find(), &host_, kFailureHolds, /*file_age=*/absl::ZeroDuration());
  Credentials patient(*Find(), &host_, kFailureHolds, /*file_age=*/absl::Hours(1));
  EXPECT_EQ(credentials.Get()->authorization, "Bearer first");
  EXPECT_EQ(patient.Get()->authorization, "Bearer first");
  Mount({{"ca.crt", "AUTHORITY"}, {"token", "second"}, {"namespace", "team"}});
  EXPECT_EQ(credentials.Get()->authorization, "Bearer second");
  EXPECT_EQ(patient.Get()->authorization, "Bearer first");
  patient.Refuse(*patient.Get());
  EXPECT_EQ(patient.Get()->authorization, "Bearer second") << "the server took the first no more";
}

TEST_F(InClusterTest, AuthoritiesThatAreReplacedAreReadAnewAndKeptWhileTheirFileIsGone) {
  Credentials credentials(*Find(), &host_, kFailureHolds, /*file_age=*/absl::ZeroDuration());
  EXPECT_EQ(credentials.Get()->ca_pem, "AUTHORITY");
  Mount({{"ca.crt", "AUTHORITY\nNEWER\n"}, {"token", "first"}});
  EXPECT_EQ(credentials.Get()->ca_pem, "AUTHORITY\nNEWER");
  Mount({{"token", "first"}});
  EXPECT_EQ(credentials.Get()->ca_pem, "AUTHORITY\nNEWER");
}

TEST_F(InClusterTest, OutsideOfAPodOneIsToldToNameAKubeconfig) {
  for (const char* variable : {kHost, kPort}) {
    Set(variable, nullptr);
    EXPECT_EQ(Find().status().code(), absl::StatusCode::kFailedPrecondition) << variable;
    EXPECT_THAT(std::string(Find().status().message()), HasSubstr("set kubernetes.kubeconfig"));
    Set(variable, "1");
  }
  EXPECT_TRUE(Find().ok());
  Mount({{"ca.crt", "AUTHORITY"}, {"namespace", "team"}});
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("no pod with a service account"));
}

TEST_F(InClusterTest, AMissingAuthorityIsNamedAndAMissingNamespaceIsTheDefault) {
  Mount({{"ca.crt", "AUTHORITY"}, {"token", "first"}});
  ASSERT_TRUE(Find().ok()) << Find().status();
  EXPECT_EQ(Find()->name_space, "default");
  Mount({{"token", "first"}});
  EXPECT_EQ(Find().status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr(directory_ / "ca.crt"));
}

TEST_F(InClusterTest, ItIsAskedForWhereThereIsNoKubeconfig) {
  Set("KUBECONFIG", nullptr);
  Set("HOME", directory_.path().c_str());
  Set(kHost, nullptr);
  const absl::Status none = FindEndpoint(KubernetesConfig()).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), HasSubstr("there is no kubeconfig"));
}

}  // namespace
}  // namespace muster::kubernetes
