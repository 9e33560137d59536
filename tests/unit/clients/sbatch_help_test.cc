#include "clients/cli/slurm/sbatch_help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "clients/cpp/slurm/sbatch_job.h"
#include "clients/cpp/slurm/sbatch_options.h"

namespace muster::cli {
namespace {

using client::slurm::SbatchOptions;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SbatchHelpTest, EachOptionHasItsLine) {
  const std::string help = SbatchHelp();
  for (const auto& option : SbatchOptions()) {
    EXPECT_NE(SbatchHelpOf(option.name), "") << option.name;
    EXPECT_THAT(help, HasSubstr("--" + std::string(option.name)));
  }
  EXPECT_THAT(help, HasSubstr("  -t, --time=TIME                 its time limit: minutes"));
  EXPECT_THAT(help, HasSubstr("      --exclusive[=user|mcs]      whole nodes"));
}

TEST(SbatchHelpTest, TellsWhatIsRefusedAndWhatToDo) {
  const std::string help = SbatchHelp();
  const size_t refused = help.find("Refused, and what to do:\n");
  ASSERT_NE(refused, std::string::npos);
  for (const auto& option : SbatchOptions()) {
    const std::string why = client::slurm::WhyRefused(option);
    if (why.empty()) {
      EXPECT_LT(help.find("--" + std::string(option.name)), refused) << option.name;
    } else {
      EXPECT_THAT(help.substr(refused), HasSubstr(why)) << option.name;
    }
  }
  EXPECT_THAT(help.substr(refused), HasSubstr("--nodefile=FILE             name the nodes with"));
  EXPECT_THAT(help.substr(0, refused), Not(HasSubstr("--nodefile")));
  const std::string usage = SbatchUsage();
  EXPECT_THAT(usage, HasSubstr("[--time=TIME]"));
  EXPECT_THAT(usage, HasSubstr("SCRIPT [ARGUMENT...]\n"));
  EXPECT_THAT(usage, Not(HasSubstr("--nodefile")));
}

}  // namespace
}  // namespace muster::cli
