#include "broker/engine/agent_sessions.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/rpc/engine_fixture.h"

namespace muster::broker {
namespace {

class AgentSessionsTest : public testing::Test {
 protected:
  core::SessionId Open(std::string_view cluster, std::string_view journal_id,
                       std::shared_ptr<AgentPeer> peer) {
    return agents_.Open(std::string(cluster), std::string(journal_id), std::move(peer));
  }

  const std::shared_ptr<AgentPeer> first_ = std::make_shared<SilentPeer>();
  const std::shared_ptr<AgentPeer> second_ = std::make_shared<SilentPeer>();
  AgentSessions agents_;
};

TEST_F(AgentSessionsTest, AnAgentSpeaksForItsClusterOnceItIsWelcomed) {
  const core::SessionId session = Open("gpu", "journal", first_);
  EXPECT_EQ(agents_.Find(session), first_);
  EXPECT_EQ(agents_.FindWelcomed("gpu"), nullptr);
  EXPECT_FALSE(agents_.IsWelcomed("gpu", "journal"));
  agents_.Welcome(session);
  EXPECT_EQ(agents_.FindWelcomed("gpu"), first_);
  EXPECT_TRUE(agents_.IsWelcomed("gpu", "journal"));
  EXPECT_FALSE(agents_.IsWelcomed("gpu", "other journal"));
  EXPECT_EQ(agents_.FindWelcomed("lab"), nullptr);
}

TEST_F(AgentSessionsTest, TheEndOfAReplacedSessionLeavesItsSuccessorWelcomed) {
  const core::SessionId replaced = Open("gpu", "old", first_);
  agents_.Welcome(replaced);
  const core::SessionId successor = Open("gpu", "new", second_);
  EXPECT_EQ(agents_.FindWelcomed("gpu"), first_);
  agents_.Welcome(successor);
  EXPECT_TRUE(agents_.IsWelcomed("gpu", "new"));
  EXPECT_FALSE(agents_.IsWelcomed("gpu", "old"));
  agents_.Remove(replaced);
  EXPECT_EQ(agents_.Find(replaced), nullptr);
  EXPECT_EQ(agents_.FindWelcomed("gpu"), second_);
}

TEST_F(AgentSessionsTest, AClusterWhoseSessionHasGoneIsNotConnected) {
  const core::SessionId session = Open("gpu", "journal", first_);
  agents_.Welcome(session);
  agents_.Remove(session);
  EXPECT_EQ(agents_.Find(session), nullptr);
  EXPECT_EQ(agents_.FindWelcomed("gpu"), nullptr);
  agents_.Welcome(session);
  EXPECT_EQ(agents_.FindWelcomed("gpu"), nullptr);
}

}  // namespace
}  // namespace muster::broker
