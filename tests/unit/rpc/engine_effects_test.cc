// Tests the effects that are carried out after a commit, and their order.
#include "tests/unit/rpc/engine_fixture.h"

namespace muster::broker {
namespace {

class EffectsTest : public EngineTest {
 protected:
  static core::Submit OneJob() {
    core::Submit submit;
    submit.user = "ada";
    submit.items.push_back({std::make_shared<const v1::JobSpec>(TrueSpec()), ""});
    return submit;
  }
};

TEST_F(EffectsTest, TheNextCommitBeginsBesideSlowEffects) {
  Start();
  std::promise<void> replying, commit_began;
  engine_->Submit(OneJob(), [&](auto reply) {
    EXPECT_TRUE(reply.ok()) << reply.status();
    replying.set_value();
    EXPECT_EQ(commit_began.get_future().wait_for(kPatience), std::future_status::ready)
        << "the reply is over before the next commit begins";
  });
  replying.get_future().wait();
  store_.CloseGate();
  std::promise<uint64_t> second;
  engine_->Submit(OneJob(), [&](auto reply) { second.set_value(reply->responses(0).job_id()); });
  store_.AwaitCommit();
  commit_began.set_value();
  std::future<uint64_t> job = second.get_future();
  EXPECT_EQ(job.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "no reply before its own commit";
  store_.OpenGate();
  EXPECT_EQ(job.get(), 2u);
}

}  // namespace
}  // namespace muster::broker
