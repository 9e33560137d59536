// Tests the common contract of backends on a real Slurm cluster, by each way to it.
#include "tests/integration/backend/contract.h"

#include <filesystem>

#include "tests/integration/slurm/test_cluster.h"
#include "tests/unit/agents/one_run.h"

namespace muster::driver {
namespace {

class SlurmPlace : public Place {
 public:
  agents::Backend& backend() override { return *backend_; }

  void Restart(const std::vector<agents::RunHandle>& journal) override {
    backend_ = slurm::SharedCluster().MakeBackend();
    EXPECT_TRUE(backend_->Adopt(journal).ok());
    AllowStarts(*backend_);
  }

  bool IsGone(const TestRun& run) override {
    return !std::filesystem::exists(slurm::SharedCluster().runs() + "/" + run.handle.run_key);
  }

 private:
  std::unique_ptr<agents::Backend> backend_ = slurm::SharedCluster().MakeBackend();
};

std::unique_ptr<Place> Slurm() { return std::make_unique<SlurmPlace>(); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Slurm, BackendContractTest, testing::Values(&Slurm));
INSTANTIATE_TEST_SUITE_P(Slurm, GangContractTest, testing::Values(&Slurm));

}  // namespace muster::driver
