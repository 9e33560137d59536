// Fields of a spec by the names that job files have for them.
#include "contract/job_file_names.h"

#include <gtest/gtest.h>

namespace muster::contract {
namespace {

TEST(JobFileName, IsTheNameThatAJobFileHasForTheField) {
  EXPECT_EQ(JobFileName("resources.memory_bytes"), "resources.memory");
  EXPECT_EQ(JobFileName("resources.gpus[0].count_millis"), "resources.gpus");
  EXPECT_EQ(JobFileName("placement.clusters[3]"), "cluster");
  EXPECT_EQ(JobFileName("time_limit"), "time");
  EXPECT_EQ(JobFileName("command.argv.args[2]"), "command[2]");
  EXPECT_EQ(JobFileName("roles[1].command.script"), "roles[1].run");
}

TEST(JobFileName, AFieldThatJobFilesNameAsTheApiDoesStays) {
  for (const char* field : {"nodes", "time_limits", "mounts[0].source", "slurm.time_limit", "env",
                            "roles[1].nodes", "kubernetes.volumes[0].claim"}) {
    EXPECT_EQ(JobFileName(field), field);
  }
}

}  // namespace
}  // namespace muster::contract
