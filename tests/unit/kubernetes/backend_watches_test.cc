// Tests which watches the backend asks the API server for, and whom it wakes then.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agents/kubernetes/backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"
#include "tests/unit/kubernetes/scripted_cluster.h"
#include "tests/unit/kubernetes/scripted_server.h"

namespace muster::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(BackendWatchesTest, OfEventsOnlyWarningsAreAskedFor) {
  std::mutex mutex;
  std::vector<std::string> events;
  ScriptedServer server([&](const ScriptedRequest& request) -> ScriptedReply {
    const bool is_watch = request.target.find("watch=1") != std::string::npos;
    {
      const std::lock_guard lock(mutex);
      if (request.target.find("/events?") != std::string::npos) events.push_back(request.target);
    }
    if (is_watch) return {.stays_open = true};
    return {.body = R"({"metadata":{"resourceVersion":"7"},"items":[]})"};
  });
  Endpoint endpoint;
  endpoint.server = server.url();
  endpoint.name_space = "lab";
  hosts::TempDir directory;
  KubernetesBackend backend({}, endpoint, directory / "state");
  ASSERT_TRUE(backend.Adopt({}).ok());
  const std::lock_guard lock(mutex);
  EXPECT_THAT(events, Each(HasSubstr("&fieldSelector=type%3DWarning")));
  EXPECT_THAT(events, Contains(HasSubstr("/namespaces/lab/events?limit=")));
}

class BackendWakeTest : public ScriptedClusterTest {};

TEST_F(BackendWakeTest, WhoIsWokenMayCallTheBackend) {
  Start({});
  const auto woken = std::make_shared<std::atomic<int>>(0);
  backend_->SetWaker([this, woken] {
    ++*woken;
    backend_->SetWaker({});
  });
  backend_->capabilities().allow_starts();
  backend_->capabilities().allow_starts();
  EXPECT_EQ(*woken, 1);
}

}  // namespace
}  // namespace muster::kubernetes
