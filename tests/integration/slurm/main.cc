// Tests of the Slurm backend on a real cluster. Needs root, for the cluster; the backend runs as an
// ordinary user.
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

std::unique_ptr<RootHelper> root_helper;      // made in main, before the first thread
std::unique_ptr<TestCluster> shared_cluster;  // of the main thread

// The user is there already, or is made as the first cluster would.
bool BecomeTestUser() {
  const std::string make = std::string("id -u ") + kTestUser +
                           " || useradd --create-home --shell /bin/bash --password '*' " +
                           kTestUser;
  root_helper->Run(make);
  const passwd* user = getpwnam(kTestUser);
  return user != nullptr && initgroups(kTestUser, user->pw_gid) == 0 && setgid(user->pw_gid) == 0 &&
         setuid(user->pw_uid) == 0;
}

}  // namespace

RootHelper& Root() { return *root_helper; }

TestCluster& SharedCluster() {
  if (shared_cluster == nullptr)
    shared_cluster = std::make_unique<TestCluster>("--nodes 2 --gpus 4 --min-job-age 5");
  return *shared_cluster;
}

}  // namespace muster::slurm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  if (geteuid() != 0) {
    fprintf(stderr, "slurm_backend_test needs root: it starts a Slurm cluster\n");
    return 1;
  }
  muster::slurm::root_helper = std::make_unique<muster::slurm::RootHelper>();
  if (!muster::slurm::BecomeTestUser()) {
    fprintf(stderr, "cannot become the user %s\n", muster::slurm::kTestUser);
    return 1;
  }
  const int result = RUN_ALL_TESTS();
  muster::slurm::shared_cluster.reset();
  muster::slurm::root_helper.reset();
  return result;
}
