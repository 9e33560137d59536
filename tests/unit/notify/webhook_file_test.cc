#include "broker/notify/webhook_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace muster::notify {
namespace {

using ::testing::HasSubstr;

std::string FileOf(const std::string& name, const std::string& text, mode_t mode) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::trunc) << text;
  EXPECT_EQ(chmod(path.c_str(), mode), 0);
  return path;
}

std::string Secret() { return FileOf("secret", "0123456789abcdef0123456789abcdef\n", 0600); }

// A webhook "ops" with these lines besides what it needs.
std::string With(const std::string& lines) {
  return "ops:\n  url: https://hooks.example.org/a\n  secret_file: " + Secret() + "\n" + lines;
}

std::string ErrorOf(const std::string& text) {
  const auto webhooks = ParseWebhooks(text, "hooks.yaml");
  EXPECT_EQ(webhooks.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(webhooks.status().message());
}

TEST(WebhookFile, GivesEachWebhookWhatItNames) {
  const auto webhooks = ParseWebhooks(With("  project: ml\n"
                                           "  filter: label.team = vision\n"
                                           "  states: [running, FAILED]\n"
                                           "chat:\n"
                                           "  url: https://chat.example.org/b\n"
                                           "  format: slack\n"),
                                      "hooks.yaml");
  ASSERT_TRUE(webhooks.ok()) << webhooks.status();
  ASSERT_EQ(webhooks->size(), 2U);
  const Webhook& ops = webhooks->front();
  EXPECT_EQ(ops.name, "ops");
  EXPECT_EQ(ops.url, "https://hooks.example.org/a");
  EXPECT_EQ(ops.secret, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(ops.project, "ml");
  EXPECT_EQ(ops.filter.key, "team");
  EXPECT_EQ(ops.states, (std::vector{v1::JOB_STATE_RUNNING, v1::JOB_STATE_FAILED}));
  EXPECT_EQ(ops.format, Webhook::Format::kMuster);
  EXPECT_EQ(webhooks->back().format, Webhook::Format::kSlack);
  EXPECT_EQ(webhooks->back().states, Webhook().states);
}

TEST(WebhookFile, NamesTheWebhookTheFieldAndTheRemedyOfABadOne) {
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("names no webhook"));
  EXPECT_THAT(ErrorOf("- a\n"), HasSubstr("hooks.yaml:1:1: expected lines"));
  EXPECT_THAT(ErrorOf("OPS: {}\n"), HasSubstr("hooks.yaml:1: \"OPS\" is no name of a webhook"));
  EXPECT_THAT(ErrorOf("ops: {format: slack}\n"), HasSubstr("ops.url: it is missing"));
  EXPECT_THAT(ErrorOf("ops: {url: 'https://a.example.org'}\n"),
              HasSubstr("ops.secret_file: it is missing"));
  EXPECT_THAT(ErrorOf(With("  urls: x\n")), HasSubstr("did you mean \"ops.url\""));
  EXPECT_THAT(ErrorOf(With("  format: teams\n")), HasSubstr("use muster, slack or otlp"));
  EXPECT_THAT(ErrorOf(With("  states: [QUEUED]\n")), HasSubstr("hooks.yaml:4:11: ops.states: "));
  EXPECT_THAT(ErrorOf(With("  format: otlp\n  states: [FAILED, RUNNING]\n")),
              HasSubstr("ops.states: RUNNING does not go with the format otlp"));
  EXPECT_THAT(ErrorOf(With("  states: []\n")), HasSubstr("at least one state"));
  EXPECT_THAT(ErrorOf(With("  project: ML team\n")),
              HasSubstr("hooks.yaml:4:12: ops.project: \"ML team\" is not a project name"));
  EXPECT_THAT(ErrorOf(With("  project: ''\n")), HasSubstr("ops.project: "));
  EXPECT_THAT(ErrorOf(With("  filter: colour = red\n")), HasSubstr("ops.filter: "));
  EXPECT_THAT(ErrorOf(With("  filter: user = ada NOT end_time > -1d\n")),
              HasSubstr("relative to now"));
  EXPECT_THAT(ErrorOf(With("  ca_file: /nowhere/ca.pem\n")), HasSubstr("ops.ca_file: cannot open"));
}

TEST(WebhookFile, ShowsNoUrlInAnError) {
  for (const char* const url : {"http://hooks.example.org/TOKEN", "ftp://x/TOKEN", "TOKEN",
                                "https://user:TOKEN@hooks.example.org/"}) {
    const std::string error = ErrorOf(std::string("ops: {url: '") + url + "'}\n");
    EXPECT_THAT(error, HasSubstr("ops.url: the URL must be https://HOST"));
    EXPECT_THAT(error, ::testing::Not(HasSubstr("TOKEN")));
  }
}

TEST(WebhookFile, RefusesASecretThatOthersCanReadOrGuess) {
  EXPECT_THAT(std::string(ReadSecret(FileOf("open", "0123456789abcdef", 0640)).status().message()),
              HasSubstr("has mode 0640, so that others can read it; chmod 600"));
  EXPECT_THAT(std::string(ReadSecret(FileOf("short", "0123456789\n", 0600)).status().message()),
              HasSubstr("has 10 bytes; a key has 16 to 4096"));
  EXPECT_THAT(
      std::string(ReadSecret(FileOf("long", std::string(5000, 'x'), 0600)).status().message()),
      HasSubstr("a key has 16 to 4096"));
  EXPECT_THAT(std::string(ReadSecret(testing::TempDir()).status().message()),
              HasSubstr("is no file"));
  EXPECT_FALSE(ReadSecret("/nowhere/secret").ok());
}

TEST(WebhookFile, RefusesMoreWebhooksThanABrokerHasThreadsFor) {
  std::string text;
  for (size_t i = 0; i <= kMaxWebhooks; ++i)
    text += "hook-" + std::to_string(i) + ": {url: 'https://a.example.org', format: slack}\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("has 33 webhooks; a broker has at most 32"));
}

}  // namespace
}  // namespace muster::notify
