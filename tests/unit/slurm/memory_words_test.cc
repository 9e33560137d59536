#include "agents/slurm/memory_words.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::slurm {
namespace {

TEST(MemoryWordsTest, LinesOfSlurmstepdAboutMemoryAreFoundInEachRelease) {
  const std::string lines =
      "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=5.batch. Some of your processes "
      "may "
      "have been killed by the cgroup out-of-memory handler.\n"
      "slurmstepd-n1: error: Detected 2 oom_kill events in StepId=5.batch. Some of the step tasks "
      "have been OOM Killed.\n"
      "slurmstepd: error: StepId=5.batch exceeded memory limit (1 > 0), being killed\n"
      "slurmstepd: error: Exceeded job memory limit\n";
  EXPECT_EQ(MemoryWords("muster-start job=5\n" + lines), lines);
  EXPECT_EQ(MemoryWords("slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT T ***\n"
                        "muster: Exceeded job memory limit\n"),
            "");
}

}  // namespace
}  // namespace muster::slurm
