// Tests the values of a SkyPilot task in YAML 1.1, as Python writes them, and where tabs may stand.
#include <string>

#include "clients/cpp/skypilot/scalar.h"
#include "tests/unit/clients/skypilot_fixture.h"

namespace muster::client::skypilot {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SkyPilotVariables, AreTextsAsPythonWritesThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"010", "8"},
      {"0.10", "0.1"},
      {"1e3", "1e3"},
      {"1:30:00", "5400"},
      {"yes", "True"},
      {"Off", "False"},
      {"08", "08"},
      {"0x1F", "31"},
      {"-0b11", "-3"},
      {"1_000", "1000"},
      {"1.", "1.0"},
      {"1.0e+20", "1e+20"},
      {".inf", "inf"},
      {"-.inf", "-inf"},
      {".nan", "nan"},
      {"'yes'", "yes"},
      {"!!str 010", "010"},
      {"y", "y"},
      {"1.5.0", "1.5.0"},
      {"2024-01-31", "2024-01-31"},
      {"2024-01-02T03:04:05Z", "2024-01-02 03:04:05+00:00"},
      {"2024-1-2 3:04:05", "2024-01-02 03:04:05"},
      {"2024-01-02t03:04:05.5 +5:30", "2024-01-02 03:04:05.500000+05:30"},
      {"2024-01-02 03:04:05.1234567-08", "2024-01-02 03:04:05.123456-08:00"},
      {"2024-01-02 03:04:05 -00:00", "2024-01-02 03:04:05+00:00"},
      {"2024-01-02 03:04:05.000+01:75", "2024-01-02 03:04:05+02:15"},
      {"2024-1-2", "2024-1-2"},
      {"'2024-01-02T03:04:05Z'", "2024-01-02T03:04:05Z"},
      {"12345678901234567890123", "12345678901234567890123"},
      {"[1, 2]", "[1, 2]"},
      {"[a, 'it''s', ~, yes]", "['a', \"it's\", None, True]"},
      {"[]", "[]"}};
  for (const auto& [yaml, text] : cases) {
    const auto read = PythonText(YAML::Load(yaml));
    ASSERT_TRUE(read.ok()) << yaml << read.status();
    EXPECT_EQ(*read, text) << yaml;
  }
}

TEST(SkyPilotVariables, AreRefusedWherePythonHasNoSuchTime) {
  for (const char* yaml :
       {"2024-13-01", "2024-02-30", "0000-01-01", "2024-01-02 24:00:00", "2024-01-02 03:04:60",
        "2024-01-02 03:60:00", "2024-01-02 03:04:05+24:00", "[2024-01-02]"}) {
    const auto read = PythonText(YAML::Load(yaml));
    EXPECT_FALSE(read.ok()) << yaml << *read;
    EXPECT_THAT(MessageOf(read.status()), HasSubstr("write it in quotes")) << yaml;
  }
}

// Each as libyaml judges it.
TEST(SkyPilotTabs, AreNoIndentation) {
  const std::pair<const char*, const char*> refused[] = {
      {"num_nodes: 1\nname:\n\ta\nrun: x", "t.yaml:3:1: "},
      {"num_nodes: 1\nrun: |\n  \tx\n  y", "t.yaml:3:3: "},
      {"num_nodes: 1\nresources:\n\t# c\n  cpus: 1\nrun: x", "t.yaml:3:1: "},
      {"num_nodes: 1\nresources:\n \t\n  cpus: 1\nrun: x", "t.yaml:3:2: "},
      {"num_nodes: 1\nrun: x\nservice:\n-\ta", "t.yaml:4:2: "},
      {"num_nodes: 1\nrun: 'x'\n\t# c", "t.yaml:3:1: "},
      {"num_nodes: 1\nenvs: {A: b}\n\t \nrun: x", "t.yaml:3:1: "},
      {"num_nodes: 1\n? run\n:\tx", "t.yaml:3:2: "}};
  for (const auto& [yaml, place] : refused) {
    const auto jobs = ParseJobFile("t.yaml", yaml);
    EXPECT_THAT(MessageOf(jobs.status()), StartsWith(place)) << yaml;
    EXPECT_THAT(MessageOf(jobs.status()), HasSubstr("is indented with a tab")) << yaml;
  }
  for (const char* yaml :
       {"num_nodes: 1\nrun:\tx", "num_nodes: 1\nrun: x\t# c", "num_nodes: 1\nrun: |\n  x\n  \ty",
        "num_nodes: 1\nrun: \"x\n\ty\"", "num_nodes: 1\nrun: 'it''s\n\ty'",
        "num_nodes: 1\nservice: [a,\n\tb]\nrun: x", "num_nodes: 1\nrun: &r |\n  x\n  \t\n  y",
        "num_nodes: 1\nrun: |2\n   \tx\n  y", "num_nodes: 1\nrun: >-\n  x\n\n  \t# y\n"}) {
    const auto jobs = ParseJobFile("t.yaml", yaml);
    EXPECT_TRUE(jobs.ok()) << yaml << jobs.status();
  }
}

}  // namespace
}  // namespace muster::client::skypilot
