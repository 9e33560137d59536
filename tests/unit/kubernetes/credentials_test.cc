#include "agents/kubernetes/api/credentials.h"

#include <filesystem>
#include <fstream>

#include "agents/core/steady_time.h"
#include "agents/hosts/local_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kV1[] = "client.authentication.k8s.io/v1";

class PluginTest : public ::testing::Test {
 protected:
  // The text is the body of a shell script.
  Endpoint WithPlugin(const std::string& text) {
    const std::string path = directory_ / "plugin";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    Endpoint endpoint;
    endpoint.context = "lab";
    endpoint.identity.exec = ExecPlugin();
    endpoint.identity.exec->api_version = kV1;
    endpoint.identity.exec->command = path;
    endpoint.identity.exec->install_hint = "install it from the lab's page";
    return endpoint;
  }
  static std::string Print(const std::string& status) {
    return "echo '{\"kind\": \"ExecCredential\", \"apiVersion\": \"" + std::string(kV1) +
           "\", \"status\": {" + status + "}}'\n";
  }
  std::string ErrorOf(const std::string& text) {
    Credentials credentials(WithPlugin(text), &host_);
    const auto credential = credentials.Get();
    EXPECT_EQ(credential.status().code(), absl::StatusCode::kUnauthenticated);
    return std::string(credential.status().message());
  }

  hosts::TempDir directory_;
  hosts::LocalHost host_;
};

TEST_F(PluginTest, ItsTokenIsUsedUntilItEnds) {
  const std::string count = directory_ / "count";
  Credentials credentials(
      WithPlugin("echo x >>" + count + "\n" +
                 Print("\"token\": \"'$(wc -l <" + count +
                       ")'\", \"expirationTimestamp\": \"2999-01-01T00:00:00Z\"")),
      &host_);
  EXPECT_EQ(credentials.Get()->authorization, "Bearer 1");
  EXPECT_EQ(credentials.Get()->authorization, "Bearer 1");
  credentials.Refuse(*credentials.Get());
  EXPECT_EQ(credentials.Get()->authorization, "Bearer 2");
}

TEST_F(PluginTest, WhatHasExpiredIsAskedForAgain) {
  const std::string count = directory_ / "count";
  Credentials credentials(
      WithPlugin("echo x >>" + count + "\n" +
                 Print("\"token\": \"'$(wc -l <" + count +
                       ")'\", \"expirationTimestamp\": \"2001-01-01T00:00:00Z\"")),
      &host_);
  EXPECT_EQ(credentials.Get()->authorization, "Bearer 1");
  EXPECT_EQ(credentials.Get()->authorization, "Bearer 2");
}

TEST_F(PluginTest, ItIsToldThatNobodyIsThereToAsk) {
  Credentials credentials(WithPlugin("case $KUBERNETES_EXEC_INFO in *'\"interactive\":false'*) " +
                                     Print("\"token\": \"t\"") + ";; esac"),
                          &host_);
  EXPECT_EQ(credentials.Get()->authorization, "Bearer t");
}

TEST_F(PluginTest, OneThatFailsIsQuotedWithItsHint) {
  const std::string words = ErrorOf("echo 'no login' >&2; exit 3");
  EXPECT_THAT(words, HasSubstr("ended with code 3: no login"));
  EXPECT_THAT(words, HasSubstr("install it from the lab's page"));
  EXPECT_THAT(words, HasSubstr("context \"lab\""));
}

TEST_F(PluginTest, WhileItHangsNobodyWaitsLongerThanTheirOwnTimeAndItRunsOnceForAll) {
  const std::string count = directory_ / "count";
  const std::string gate = directory_ / "gate";
  Credentials credentials(WithPlugin("echo x >>" + count + "; while [ ! -e " + gate +
                                     " ]; do sleep 0.05; done\n" + Print("\"token\": \"t\"")),
                          &host_);
  for (int caller = 0; caller < 3; ++caller) {
    const absl::Status status =
        credentials.Get(agents::SteadyNow() + absl::Milliseconds(20)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("it did not end within the time of this request"));
  }
  std::ofstream(gate).close();
  EXPECT_EQ(credentials.Get()->authorization, "Bearer t");
  EXPECT_EQ(std::filesystem::file_size(count), 2) << "it ran once";
}

TEST_F(PluginTest, ItsFailureHoldsForAWhileForAllWhoAsk) {
  const std::string count = directory_ / "count";
  const std::string text = "echo x >>" + count + "; exit 3";
  Credentials patient(WithPlugin(text), &host_, absl::Hours(1));
  for (int caller = 0; caller < 3; ++caller) {
    EXPECT_THAT(std::string(patient.Get().status().message()), HasSubstr("ended with code 3"));
  }
  EXPECT_EQ(std::filesystem::file_size(count), 2) << "it ran once";
  Credentials eager(WithPlugin(text), &host_, absl::ZeroDuration());
  EXPECT_FALSE(eager.Get().ok());
  EXPECT_FALSE(eager.Get().ok());
  EXPECT_EQ(std::filesystem::file_size(count), 6);
}

TEST_F(PluginTest, OneThatIsNotThereIsNamed) {
  Endpoint endpoint = WithPlugin("");
  endpoint.identity.exec->command = "/nonexistent/plugin";
  Credentials credentials(endpoint, &host_);
  EXPECT_THAT(std::string(credentials.Get().status().message()), HasSubstr("/nonexistent/plugin"));
}

TEST_F(PluginTest, RubbishIsToldWithoutRepeatingIt) {
  const std::string words = ErrorOf("echo token=very-secret");
  EXPECT_THAT(words, HasSubstr("it printed no JSON object"));
  EXPECT_THAT(words, Not(HasSubstr("very-secret")));
  EXPECT_THAT(ErrorOf("echo '{\"kind\": \"Pod\"}'"), HasSubstr("no ExecCredential"));
  EXPECT_THAT(ErrorOf(Print("")), HasSubstr("neither a token nor a certificate"));
  EXPECT_THAT(ErrorOf(Print("\"clientKeyData\": \"k\"")), HasSubstr("one is missing"));
  EXPECT_THAT(ErrorOf(Print("\"token\": \"t\", \"expirationTimestamp\": \"soon\"")),
              HasSubstr("\"soon\" is no time"));
}

TEST(CredentialsTest, ATokenFileIsReadAgainAfterARefusal) {
  const hosts::TempDir directory;
  hosts::LocalHost host;
  Endpoint endpoint;
  endpoint.identity.token_file = directory / "token";
  Credentials credentials(endpoint, &host);
  EXPECT_EQ(credentials.Get().status().code(), absl::StatusCode::kUnauthenticated);
  std::ofstream(endpoint.identity.token_file) << "first\n";
  EXPECT_EQ(credentials.Get()->authorization, "Bearer first");
  std::ofstream(endpoint.identity.token_file) << "second\n";
  credentials.Refuse(*credentials.Get());
  EXPECT_EQ(credentials.Get()->authorization, "Bearer second");
}

TEST(CredentialsTest, AnEmptyTokenFileIsNamedAndTakesNothingAwayFromWhatIsKnown) {
  const hosts::TempDir directory;
  hosts::LocalHost host;
  Endpoint endpoint;
  endpoint.identity.token_file = directory / "token";
  std::ofstream(endpoint.identity.token_file) << "\n";
  Credentials credentials(endpoint, &host, kFailureHolds, /*file_age=*/absl::ZeroDuration());
  const absl::Status empty = credentials.Get().status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(std::string(empty.message()),
            "the token for the API server: " + endpoint.identity.token_file + " is empty");
  std::ofstream(endpoint.identity.token_file) << "first";
  EXPECT_EQ(credentials.Get()->authorization, "Bearer first");
  std::ofstream(endpoint.identity.token_file).close();
  EXPECT_EQ(credentials.Get()->authorization, "Bearer first");
  credentials.Refuse(*credentials.Get());
  EXPECT_FALSE(credentials.Get().ok()) << "the server does not take it any more";
}

TEST(CredentialsTest, ACertificateThatIsRenewedInItsFileIsReadAgain) {
  const hosts::TempDir directory;
  Endpoint endpoint;
  endpoint.identity.certificate_file = directory / "certificate";
  endpoint.identity.key_file = directory / "key";
  std::ofstream(endpoint.identity.certificate_file) << "first";
  std::ofstream(endpoint.identity.key_file) << "key";
  hosts::LocalHost host;
  Credentials credentials(endpoint, &host);
  EXPECT_EQ(credentials.Get()->certificate_pem, "first");
  std::ofstream(endpoint.identity.certificate_file) << "second";
  credentials.Refuse(*credentials.Get());
  EXPECT_EQ(credentials.Get()->certificate_pem, "second");
  EXPECT_EQ(credentials.Get()->key_pem, "key");
}

}  // namespace
}  // namespace muster::kubernetes
