// Makes a real cluster with stand-ins for Pyxis and enroot, which make image files fast.
#ifndef MUSTER_TESTS_INTEGRATION_SLURM_IMAGE_FIXTURE_H_
#define MUSTER_TESTS_INTEGRATION_SLURM_IMAGE_FIXTURE_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {

class ImageFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<TestCluster>("--nodes 2 --no-dbd --pyxis " MUSTER_PYXIS);
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  static SlurmConfig ConfigWith(const std::string& image_dir) {
    SlurmConfig config = cluster_->Config();
    config.image_dir = image_dir;
    config.conversion_partition = "short";
    config.conversion_memory_mib = 1024;
    config.conversion_time_limit = absl::Minutes(1);
    return config;
  }

  inline static std::unique_ptr<TestCluster> cluster_;
};

}  // namespace muster::slurm

#endif  // MUSTER_TESTS_INTEGRATION_SLURM_IMAGE_FIXTURE_H_
