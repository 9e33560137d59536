// The schema of job files knows the fields that their reader knows.
#include "clients/cpp/job_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "clients/cpp/jobfile.h"
#include "contract/parts.h"

namespace muster::client {
namespace {

using Fields = std::set<std::string>;

// The fields that the reader lists when it is given one that it does not know.
Fields KnownToReader(const std::string& before) {
  const auto read = ParseJobFile("t.yaml", before + "zzqqxxjjkk: 1\n");
  const std::string text(read.status().message());
  constexpr std::string_view kList = "known here: ";
  const size_t begin = text.find(kList);
  if (begin == text.npos) return {text};
  std::string list = text.substr(begin + kList.size());
  list = list.substr(0, list.find('\n'));
  Fields fields;
  for (std::string_view part : contract::Split(list, ',')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    fields.emplace(part);
  }
  return fields;
}

Fields InSchema(const std::string& type) {
  const auto schema = nlohmann::json::parse(JobFileSchema());
  Fields fields;
  for (const auto& [name, _] : schema["definitions"][type]["properties"].items())
    fields.insert(name);
  return fields;
}

// The names that the reader advertises; the schema also has those of the API.
void ExpectKnown(const Fields& told, const Fields& schema) {
  EXPECT_GT(told.size(), 2u) << *told.begin();
  for (const std::string& field : told) EXPECT_TRUE(schema.contains(field)) << field;
}

TEST(JobSchemaTest, HasEveryFieldThatTheReaderAdvertises) {
  ExpectKnown(KnownToReader("run: a\n"), InSchema("JobSpec"));
  ExpectKnown(KnownToReader("run: a\nresources:\n  "), InSchema("Resources"));
  ExpectKnown(KnownToReader("run: a\nslurm:\n  "), InSchema("SlurmOptions"));
  ExpectKnown(KnownToReader("run: a\nkubernetes:\n  "), InSchema("KubernetesOptions"));
  ExpectKnown(KnownToReader("run: a\nretry:\n  "), InSchema("RetryPolicy"));
  ExpectKnown(KnownToReader("roles:\n- "), InSchema("Role"));
}

TEST(JobSchemaTest, HasNoFieldThatTheReaderRefuses) {
  for (const std::string& field : InSchema("JobSpec")) {
    const auto read = ParseJobFile("t.yaml", field + ": {zz: 1}\n");
    EXPECT_EQ(std::string(read.status().message()).find(field + ": no such field"),
              std::string::npos)
        << field;
  }
}

}  // namespace
}  // namespace muster::client
