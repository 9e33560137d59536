// Tests of the Slurm backend on a real cluster. Needs root, for the cluster; the backend runs as an
// ordinary user.
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

std::unique_ptr<RootHelper> root_helper;      // made in main, before the first thread
std::string slurm_programs;                   // likewise
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

// Puts the programs of the release of Slurm in MUSTER_TEST_SLURM, if there is one, before the
// machine's own: for the backends, for the helper and for the jobs.
bool ChooseSlurm() {
  const char* release = getenv("MUSTER_TEST_SLURM");
  if (release == nullptr || *release == '\0') return true;
  const RootHelper::Result found = RootHelper().Run(
      fmt::format("{}/tests/support/slurm-release {} 2>/dev/null", MUSTER_SOURCE_DIR, release));
  const std::string bin = found.output.substr(0, found.output.find('\n'));
  slurm_programs = bin;
  return found.status == 0 && setenv("PATH", (bin + ":" + getenv("PATH")).c_str(), 1) == 0;
}

}  // namespace

const std::string& SlurmPrograms() { return slurm_programs; }

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
  if (!muster::slurm::ChooseSlurm()) {
    fprintf(stderr, "tests/support/slurm-release cannot provide MUSTER_TEST_SLURM\n");
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
