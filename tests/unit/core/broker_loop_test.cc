// Clusters that are other brokers: those that lead back are refused, and the others have a queue of
// their own.
#include <string>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::HasSubstr;

class BrokerLoopTest : public CoreTest {
 protected:
  // A broker with these instances behind it; the fixture's own broker is k7m2.
  static agent::v1::AgentHello BrokerHello(const std::vector<std::string>& behind) {
    agent::v1::AgentHello hello = Hello("far");
    hello.set_kind(v1::CLUSTER_KIND_MUSTER);
    hello.mutable_inventory()->set_identity(behind.front());
    for (const std::string& instance : behind)
      hello.mutable_inventory()->add_broker_instances(instance);
    return hello;
  }
};

TEST_F(BrokerLoopTest, AClusterThatHasThisBrokerBehindItIsRefused) {
  for (const auto& behind : {std::vector<std::string>{"k7m2"}, {"b222", "c333", "k7m2"}}) {
    const SessionId session = Connect(BrokerHello(behind));
    ASSERT_TRUE(Closed(session).has_value());
    EXPECT_EQ(ReasonOf(*Closed(session)), "BROKER_LOOP");
    EXPECT_THAT(Closed(session)->ToString(), HasSubstr("k7m2"));
    EXPECT_TRUE(Clusters().empty());
  }
}

TEST_F(BrokerLoopTest, OtherBrokersBehindItAreWelcome) {
  EXPECT_TRUE(Welcomed(Connect(BrokerHello({"b222", "c333"}))).has_value());
}

TEST_F(BrokerLoopTest, ALoopThatComesAboutLaterEndsTheConnection) {
  const agent::v1::AgentHello hello = BrokerHello({"b222"});
  const SessionId session = Connect(hello);
  agent::v1::AgentHeartbeat beat;
  *beat.mutable_inventory() = hello.inventory();
  Beat(session, beat);
  EXPECT_FALSE(Closed(session).has_value());
  beat.mutable_inventory()->add_broker_instances("k7m2");
  Beat(session, beat);
  ASSERT_TRUE(Closed(session).has_value());
  EXPECT_EQ(ReasonOf(*Closed(session)), "BROKER_LOOP");
}

TEST_F(BrokerLoopTest, AnotherBrokerHoldsWaitingRunsAsSlurmDoes) {
  agent::v1::AgentHello hello = BrokerHello({"b222"});
  const SessionId session = Connect(hello);
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_cpu_millis(8000);
  size_t assigned = 0;
  for (int i = 0; i < 4; ++i) {
    MustSubmit(spec);
    assigned += Assigned(session).size();
  }
  EXPECT_EQ(assigned, 4u) << "two run, and two wait in its queue";
}

TEST_F(BrokerLoopTest, APoolWhoseNodesNobodySeesMayHaveWhatAJobNeeds) {
  agent::v1::AgentHello hello = BrokerHello({"b222"});
  hello.mutable_inventory()->mutable_pools(0)->clear_node_groups();
  const SessionId session = Connect(hello);
  MustSubmit(SpecWithGpus("H100", 8));
  EXPECT_EQ(Assigned(session).size(), 1u);
}

}  // namespace
}  // namespace muster::core
