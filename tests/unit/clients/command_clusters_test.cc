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

TEST_F(CommandTest, ClustersCordonSendsTheReasonAndShowsTheCordon) {
  v1::CordonClusterRequest seen;
  broker_.cordon_cluster =
      [&](const v1::CordonClusterRequest& request) -> absl::StatusOr<v1::CordonClusterResponse> {
    seen = request;
    v1::CordonClusterResponse response;
    response.mutable_cluster()->set_name(request.name());
    response.mutable_cluster()->set_active_runs(2);
    return response;
  };
  const Outcome cordoned = Run({"clusters", "cordon", "lab", "--reason", "new drivers"});
  EXPECT_EQ(cordoned.code, 0) << cordoned.err;
  EXPECT_EQ(seen.name(), "lab");
  EXPECT_EQ(seen.reason(), "new drivers");
  EXPECT_FALSE(seen.drain());
  EXPECT_THAT(cordoned.err, HasSubstr("cluster lab takes no new runs; 2 active runs there"));
  EXPECT_EQ(Run({"clusters", "cordon", "lab", "-q"}).out, "lab\n");
  const Outcome drained = Run({"clusters", "drain", "lab", "--reason", "new drivers"});
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_TRUE(seen.drain());
  EXPECT_THAT(drained.err, HasSubstr("and gives back those that have not begun"));

  broker_.list_clusters = [](const auto&) -> absl::StatusOr<v1::ListClustersResponse> {
    v1::ListClustersResponse page;
    v1::Cluster* cluster = page.add_clusters();
    cluster->set_name("lab");
    cluster->set_state(v1::CLUSTER_STATE_CONNECTED);
    cluster->mutable_cordon()->set_user("ann");
    cluster->mutable_cordon()->set_reason("new drivers");
    return page;
  };
  const std::string listed = Run({"clusters"}).out;
  EXPECT_THAT(listed, HasSubstr("CORDONED"));
  EXPECT_THAT(listed, HasSubstr("cordoned by ann since"));
}

TEST_F(CommandTest, ClustersUncordonTakesNoReason) {
  std::string name;
  broker_.uncordon_cluster = [&](const v1::UncordonClusterRequest& request)
      -> absl::StatusOr<v1::UncordonClusterResponse> {
    name = request.name();
    v1::UncordonClusterResponse response;
    response.mutable_cluster()->set_name(request.name());
    return response;
  };
  const Outcome done = Run({"clusters", "uncordon", "lab"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(name, "lab");
  EXPECT_THAT(done.err, HasSubstr("cluster lab takes runs"));
  EXPECT_EQ(Run({"clusters", "uncordon", "lab", "--reason", "x"}).code, 2);
  EXPECT_EQ(Run({"clusters", "lab", "--reason", "x"}).code, 2);
  EXPECT_EQ(Run({"clusters", "lift", "lab"}).code, 2);
}

}  // namespace
}  // namespace muster::cli
