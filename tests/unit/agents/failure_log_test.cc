#include "agents/core/failure_log.h"

#include <gtest/gtest.h>

namespace muster::agents {
namespace {

TEST(FailureLogTest, WhatFailsInTheSameWordsIsLoggedOnce) {
  FailureLog log;
  const absl::Status away = absl::UnavailableError("nobody listens");
  EXPECT_TRUE(log.Note("clean_up_failed", "a", away));
  EXPECT_FALSE(log.Note("clean_up_failed", "a", away));
  EXPECT_TRUE(log.Note("clean_up_failed", "b", away)) << "another run";
  EXPECT_TRUE(log.Note("cancel_failed", "a", away)) << "something else";
  EXPECT_TRUE(log.Note("clean_up_failed", "a", absl::InternalError("no disk")));
  EXPECT_TRUE(log.Note("clean_up_failed", "a", away)) << "changed again";
}

TEST(FailureLogTest, WhatHasWorkedOrIsOverIsLoggedAnew) {
  FailureLog log;
  const absl::Status away = absl::UnavailableError("nobody listens");
  log.Note("hold_failed", "a", away);
  EXPECT_FALSE(log.Note("hold_failed", "a", absl::OkStatus()));
  EXPECT_TRUE(log.Note("hold_failed", "a", away));
  log.Note("hold_failed", "aa", away);
  log.Forget("a");
  EXPECT_TRUE(log.Note("hold_failed", "a", away));
  EXPECT_FALSE(log.Note("hold_failed", "aa", away));
}

}  // namespace
}  // namespace muster::agents
