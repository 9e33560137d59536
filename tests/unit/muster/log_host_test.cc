#include "agents/muster/log_host.h"

#include "gtest/gtest.h"

namespace muster::remote {
namespace {

TEST(LogName, ItsPathNamesTheRunTheRankAndTheOutput) {
  const LogName name = {.run_key = "k7m2-42-1", .rank = 12, .stream = v1::LOG_STREAM_STDERR};
  EXPECT_EQ(name.Path(), "/k7m2-42-1/rank-12.err");
  const auto read = LogName::Parse(name.Path());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->run_key, name.run_key);
  EXPECT_EQ(read->rank, name.rank);
  EXPECT_EQ(read->stream, name.stream);
}

TEST(LogName, OtherPathsAreNoLogs) {
  for (const char* path : {"", "/", "/rank-0.out", "/k/rank-.out", "/k/rank-1.txt", "k/rank-1.out"})
    EXPECT_FALSE(LogName::Parse(path).has_value()) << path;
}

}  // namespace
}  // namespace muster::remote
