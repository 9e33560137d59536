// Shared by the tests of SkyPilot tasks.
#ifndef MUSTER_TESTS_UNIT_CLIENTS_SKYPILOT_FIXTURE_H_
#define MUSTER_TESTS_UNIT_CLIENTS_SKYPILOT_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "clients/cpp/jobfile.h"
#include "contract/task_script.h"
#include "contract/text.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"

namespace muster::client::skypilot {

inline std::string MessageOf(const absl::Status& status) {
  return std::string(ToStd(status.message()));
}

// Holds a text and its result: the jobs, or the first error, or how the test is wrong.
struct Row {
  const char* name;
  const char* yaml;
  // The jobs in protobuf's text format, with "---" between jobs and "<bash>" for the lines before a
  // task's script; or, beginning with "t.yaml:", the beginning of the error, and behind a '|' other
  // words that it has.
  const char* becomes;
};

inline void ExpectJobs(const std::vector<v1::JobSpec>& specs, std::string_view becomes) {
  constexpr std::string_view kBetween = "---";
  std::vector<v1::JobSpec> expected;
  while (true) {
    const size_t end = becomes.find(kBetween);
    const std::string text =
        absl::StrReplaceAll(std::string(becomes.substr(0, end)),
                            {{"<bash>", absl::CEscape(ToAbsl(contract::kTaskScriptPreamble))}});
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &expected.emplace_back()))
        << becomes;
    if (end == becomes.npos) break;
    becomes.remove_prefix(end + kBetween.size());
  }
  ASSERT_EQ(specs.size(), expected.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(specs[i], expected[i]))
        << specs[i].DebugString() << "instead of\n"
        << expected[i].DebugString();
  }
}

// `yaml` as a file becomes what the row says; `before` is put before the specs that it has.
inline void ExpectRow(const Row& row, const std::string& yaml, const std::string& before) {
  const std::string_view becomes = row.becomes;
  const auto jobs = ParseJobFile("t.yaml", yaml);
  if (!becomes.starts_with("t.yaml:")) {
    ASSERT_TRUE(jobs.ok()) << yaml << jobs.status();
    return ExpectJobs(jobs->specs, before + std::string(becomes));
  }
  ASSERT_FALSE(jobs.ok()) << yaml << jobs->specs[0].DebugString();
  const size_t bar = becomes.find('|');
  EXPECT_THAT(MessageOf(jobs.status()), ::testing::StartsWith(std::string(becomes.substr(0, bar))));
  if (bar == becomes.npos) return;
  EXPECT_THAT(MessageOf(jobs.status()), ::testing::HasSubstr(std::string(becomes.substr(bar + 1))));
}

inline std::string NameOf(const ::testing::TestParamInfo<Row>& info) { return info.param.name; }

}  // namespace muster::client::skypilot

#endif  // MUSTER_TESTS_UNIT_CLIENTS_SKYPILOT_FIXTURE_H_
