#include "agents/users/users_lines.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace muster::users {
namespace {

TEST(SharedUserTest, MachinesAndSlurmHaveWordsOfTheirOwnAndARemedy) {
  std::set<std::string> words;
  for (const v1::ClusterKind kind : {v1::CLUSTER_KIND_MACHINES, v1::CLUSTER_KIND_SLURM}) {
    const v1::ClusterCheck line = SharedUserLine(kind);
    EXPECT_EQ(line.subject(), kUsersSubject);
    EXPECT_EQ(line.code(), v1::CHECK_CODE_USERS);
    EXPECT_EQ(line.result(), v1::CHECK_RESULT_OK);
    EXPECT_TRUE(line.seen().starts_with("all jobs run ")) << line.seen();
    EXPECT_NE(line.remedy().find("run_as: user"), std::string::npos) << line.remedy();
    words.insert(line.seen());
  }
  EXPECT_EQ(words.size(), 2U);
}

}  // namespace
}  // namespace muster::users
