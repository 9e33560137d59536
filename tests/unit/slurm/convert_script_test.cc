// convert.sh, run by bash as Slurm would run it, with a script in srun's place.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "agents/slurm/image_cache.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ConvertScriptTest : public StubCommandsTest {
 protected:
  // Runs a conversion whose srun is this script; returns what it left behind as its reason.
  std::string WhyNot(const std::string& srun) {
    AddCommand("srun", srun);
    std::ofstream(root_ + "/convert.sh") << ConvertScript();
    const std::string command = fmt::format(
        "SLURM_JOB_ID=16 TMPDIR={0} PATH={0}:$PATH bash {0}/convert.sh {0}/a.sqsh docker://a",
        root_);
    EXPECT_NE(std::system(command.c_str()), 0);
    std::ostringstream text;
    text << std::ifstream(root_ + "/a.sqsh.failed").rdbuf();
    return text.str();
  }
};

TEST_F(ConvertScriptTest, AnImportThatIsKilledSaysByWhichSignal) {
  const std::string why = WhyNot("echo 'srun: error: n1: task 0: Killed' >&2; exit 137");
  EXPECT_THAT(why, StartsWith("cause=killed\n"));
  EXPECT_THAT(why, HasSubstr("task 0: Killed\nthe conversion was killed by signal 9\n"));
}

TEST_F(ConvertScriptTest, AnImportThatRanOutOfMemorySaysSo) {
  for (const char* words :
       {"slurmstepd-n1: error: Detected 1 oom_kill event in StepId=16.0. Some of "
        "the step tasks have been OOM Killed.",
        "srun: error: n1: task 0: Out Of Memory", "FATAL ERROR: Out of memory (cache)"}) {
    const std::string why = WhyNot(fmt::format("echo '{}' >&2; exit 137", words));
    EXPECT_THAT(why, StartsWith("cause=out_of_memory\n"));
    EXPECT_THAT(why, HasSubstr(words));
  }
}

TEST_F(ConvertScriptTest, AnyOtherEndIsInEnrootsWords) {
  EXPECT_THAT(WhyNot("echo '[ERROR] no'; exit 1"), StartsWith("cause=conversion\n[ERROR] no\n"));
  EXPECT_THAT(WhyNot("exit 0"), StartsWith("cause=no_squashfs\n"));
}

TEST_F(ConvertScriptTest, OneWhoseShellIsKilledWasStopped) {
  EXPECT_THAT(WhyNot("kill -s KILL $PPID"), StartsWith("cause=stopped\n"));
}

}  // namespace
}  // namespace muster::slurm
