// Tests the common contract of backends on a real Kubernetes cluster, with the least rights.
#include "tests/integration/backend/contract.h"

#include "tests/integration/kubernetes/backend_fixture.h"

namespace muster::driver {
namespace {

std::unique_ptr<Place> Kubernetes() { return std::make_unique<kubernetes::BackendPlace>(); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Kubernetes, BackendContractTest, testing::Values(&Kubernetes));
INSTANTIATE_TEST_SUITE_P(Kubernetes, GangContractTest, testing::Values(&Kubernetes));

}  // namespace muster::driver
