// Tests the words about clusters that a command line or a file names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandTest, ListSaysThatNoClusterHasAName) {
  broker_.list_jobs = [](const auto&) -> absl::StatusOr<v1::ListJobsResponse> {
    return v1::ListJobsResponse();
  };
  broker_.list_clusters = [](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
    v1::ListClustersResponse page;
    for (const char* name : {"box", "lab"}) page.add_clusters()->set_name(name);
    return page;
  };
  const Outcome outcome = Run({"list", "--cluster", "nobox", "--cluster", "lab"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "muster: no jobs\nmuster: no cluster \"nobox\" is known; there are: box, lab\n");
  EXPECT_EQ(Run({"list", "--cluster", "lab"}).err, "muster: no jobs\n");
  EXPECT_EQ(Run({"list", "--name", "train"}).err, "muster: no jobs\n");
  EXPECT_EQ(Run({"list", "-q", "--cluster", "nobox"}).err, "");
}

TEST_F(CommandTest, ATaskThatTakesAClusterForOneOfAnotherKindIsTold) {
  broker_.list_clusters = [](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
    v1::ListClustersResponse page;
    page.add_clusters()->set_name("box");
    page.mutable_clusters(0)->set_kind(v1::CLUSTER_KIND_MACHINES);
    page.add_clusters()->set_name("lab");
    page.mutable_clusters(1)->set_kind(v1::CLUSTER_KIND_SLURM);
    return page;
  };
  const auto told = [&](const std::string& infra) {
    return Run({"submit", WriteFile("num_nodes: 1\nrun: x\nresources: {infra: " + infra + "}\n")})
        .err;
  };
  EXPECT_THAT(told("k8s/box"),
              HasSubstr("job.yaml:3:20: resources.infra: cluster box is of kind machines, not "
                        "kubernetes; it is taken by its name (ssh/box says both)\n"));
  EXPECT_EQ(submitted_.back().spec().placement().clusters(0), "box");
  EXPECT_THAT(told("ssh/lab"), HasSubstr("of kind slurm, not machines"));
  const size_t count = submitted_.size();
  const std::string strict = WriteFile("num_nodes: 1\nrun: x\nresources: {infra: k8s/box}\n");
  EXPECT_EQ(Run({"submit", "--strict", strict}).code, 1);
  EXPECT_EQ(submitted_.size(), count);
  for (const char* right : {"ssh/box", "slurm/lab", "slurm", "k8s/elsewhere"})
    EXPECT_THAT(told(right), Not(HasSubstr("of kind"))) << right;
}

}  // namespace
}  // namespace muster::cli
