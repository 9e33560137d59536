// Tests lists of clusters: what is asked for, and no more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClustersTest : public CoreTest {
 protected:
  ClustersTest() {
    for (const char* name : {"c", "a", "d", "b"}) Connect(name);
  }
  std::vector<std::string> Names(core::ListClusters which) {
    const ClustersReply reply = ListClusters(std::move(which));
    more_ = reply.more;
    std::vector<std::string> names;
    for (const v1::Cluster& cluster : reply.clusters) names.push_back(cluster.name());
    return names;
  }

  bool more_ = false;
};

TEST_F(ClustersTest, AClusterThatIsNamedComesAlone) {
  EXPECT_THAT(Names({.name = "b"}), ElementsAre("b"));
  EXPECT_FALSE(more_);
  EXPECT_THAT(Names({.name = "bb"}), IsEmpty());
}

TEST_F(ClustersTest, APageHasNoMoreThanAskedForAndSaysWhetherOthersFollow) {
  EXPECT_THAT(Names({.max_clusters = 3}), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(more_);
  EXPECT_THAT(Names({.after = "c", .max_clusters = 3}), ElementsAre("d"));
  EXPECT_FALSE(more_);
}

TEST_F(ClustersTest, APageEndsBeforeTheClusterThatMakesItTooLarge) {
  const size_t bytes = Hello("a").inventory().ByteSizeLong();
  EXPECT_THAT(Names({.max_bytes = 2 * bytes}), ElementsAre("a", "b"));
  EXPECT_TRUE(more_);
  EXPECT_THAT(Names({.after = "c", .max_bytes = 1}), ElementsAre("d")) << "one is always given";
  EXPECT_FALSE(more_);
}

TEST_F(ClustersTest, AKubernetesClusterThatTwoAgentsSpeakForIsWarnedOfInBoth) {
  for (const char* name : {"k1", "k2", "k3"}) {
    agent::v1::AgentHello hello = Hello(name);
    hello.set_kind(v1::CLUSTER_KIND_KUBERNETES);
    hello.mutable_inventory()->set_identity(std::string_view(name) == "k3" ? "other" : "same");
    Connect(hello);
  }
  const auto warnings = [&](const char* name) {
    const ClustersReply reply = ListClusters({.name = name});
    const v1::Inventory& inventory = reply.clusters.at(0).inventory();
    std::vector<std::string> issues;
    for (const v1::ClusterIssue& issue : inventory.issues()) issues.push_back(issue.message());
    return issues;
  };
  EXPECT_THAT(warnings("k1"), ElementsAre(HasSubstr("cluster \"k2\" is the same Kubernetes")));
  EXPECT_THAT(warnings("k2"), ElementsAre(HasSubstr("cluster \"k1\" is the same Kubernetes")));
  EXPECT_THAT(warnings("k3"), IsEmpty());
  EXPECT_THAT(warnings("a"), IsEmpty());
}

TEST_F(ClustersTest, AnIssueThatComesLaterSaysSinceWhen) {
  const auto issue = [](v1::ClusterIssueCode code, const std::string& subject) {
    v1::ClusterIssue issue;
    issue.set_code(code);
    issue.set_subject(subject);
    return issue;
  };
  agent::v1::AgentHello hello = Hello("late");
  *hello.mutable_inventory()->add_issues() = issue(v1::CLUSTER_ISSUE_CODE_NO_GPUS, "");
  const SessionId session = Connect(hello);
  const auto issues = [&] { return ListClusters({.name = "late"}).clusters.at(0).inventory(); };
  EXPECT_FALSE(issues().issues(0).has_since()) << "it was there before the broker heard of it";
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = hello.inventory();
  *beat.mutable_inventory()->add_issues() = issue(v1::CLUSTER_ISSUE_CODE_HOST_UNUSABLE, "n1");
  now_ += absl::Seconds(5);
  const int64_t begun = absl::ToUnixSeconds(now_);
  Beat(session, beat);
  now_ += absl::Seconds(5);
  *beat.mutable_inventory()->add_issues() = issue(v1::CLUSTER_ISSUE_CODE_HOST_UNUSABLE, "n1");
  Beat(session, beat);
  EXPECT_FALSE(issues().issues(0).has_since());
  EXPECT_EQ(issues().issues(1).since().seconds(), begun);
  EXPECT_EQ(issues().issues(2).since().seconds(), absl::ToUnixSeconds(now_))
      << "another issue of the same host has a time of its own";
}

TEST_F(ClustersTest, DataOfAClusterKeepsItFromNoJobAndFilesOfAMachineDo) {
  agent::v1::AgentHello hello = Hello("slurm");
  hello.set_kind(v1::CLUSTER_KIND_SLURM);
  Connect(hello);
  auto spec = std::make_shared<v1::JobSpec>(Spec());
  spec->add_inputs()->set_uri("lustre:///data");
  spec->set_results_directory("/results");
  EXPECT_THAT(Names({.that_could_take = spec}), ElementsAre("a", "b", "c", "d", "slurm"));
  spec->add_inputs()->set_uri("file:///home/me/data");
  EXPECT_THAT(Names({.that_could_take = spec}), ElementsAre("a", "b", "c", "d"));
}

}  // namespace
}  // namespace muster::core
