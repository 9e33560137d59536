#include "daemon/command_line.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

std::string Told(const std::vector<std::string>& words) {
  const std::vector<Setting> settings = {{"state_dir", "", {}}, {"machines.cpus", "", {}}};
  return UnknownWords("muster-agent", words, settings, {"--check", "--config"});
}

TEST(CommandLineTest, AFlagThatIsMisspeltIsToldWithTheOneThatWasMeant) {
  EXPECT_EQ(Told({"/x", "--state-dirr"}),
            "\"--state-dirr\" is not a flag of muster-agent; did you mean --state-dir?");
  EXPECT_EQ(Told({"--machine-cpus=8"}),
            "\"--machine-cpus\" is not a flag of muster-agent; did you mean --machines-cpus?");
  EXPECT_EQ(Told({"--chek"}), "\"--chek\" is not a flag of muster-agent; did you mean --check?");
}

TEST(CommandLineTest, WhereNoneIsNearTheHelpIsNamed) {
  EXPECT_EQ(Told({"--colour"}),
            "\"--colour\" is not a flag of muster-agent; see: muster-agent --help");
  EXPECT_EQ(Told({"start", "now"}),
            "\"start\" is more than muster-agent takes; see: muster-agent --help");
}

}  // namespace
}  // namespace muster
