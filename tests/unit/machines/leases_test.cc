#include "agents/machines/leases.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "agents/core/lease_file.h"
#include "agents/machines/small_file.h"

namespace muster::machines {
namespace {

class OwnLeaseTest : public testing::Test {
 protected:
  OwnLeaseTest() {
    std::string name = testing::TempDir() + "/leases-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~OwnLeaseTest() override { std::filesystem::remove_all(directory_); }

  static std::optional<agents::LeaseFile> Read(const std::string& path) {
    std::string text;
    if (ReadSmallFile(path, agents::kMaxLeaseFileBytes, &text) != 0) return std::nullopt;
    return agents::ParseLeaseFile(text);
  }
  int CountFiles() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      count += entry.is_regular_file();
    return count;
  }

  std::string directory_;
};

TEST_F(OwnLeaseTest, NothingMayStartBeforeTheFirstRenewal) {
  const OwnLease lease(directory_);
  EXPECT_FALSE(Read(lease.path()).has_value());
}

TEST_F(OwnLeaseTest, RenewalsOfATermRaiseTheNumberInOneFile) {
  OwnLease lease(directory_);
  ASSERT_TRUE(lease.Renew(absl::Minutes(1)).ok());
  const std::string path = lease.path();
  const auto first = Read(path);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->remaining_ms, 60'000);
  ASSERT_TRUE(lease.Renew(absl::Minutes(1)).ok());
  EXPECT_EQ(lease.path(), path);
  EXPECT_GT(Read(path)->number, first->number);
}

TEST_F(OwnLeaseTest, ARunThatWaitedThroughALapseNeverStarts) {
  OwnLease lease(directory_);
  ASSERT_TRUE(lease.Renew(absl::ZeroDuration()).ok());
  const std::string before = lease.path();
  ASSERT_TRUE(lease.Renew(absl::Minutes(1)).ok());
  EXPECT_NE(lease.path(), before);
  EXPECT_FALSE(Read(before).has_value());
  EXPECT_TRUE(agents::MayStartUnderLease(Read(lease.path()), absl::ToUnixMillis(absl::Now())));
  EXPECT_EQ(CountFiles(), 1);
}

TEST_F(OwnLeaseTest, TheNextAgentGoesOnWithATermThatHasNotLapsed) {
  std::string path;
  uint64_t number = 0;
  {
    OwnLease lease(directory_);
    ASSERT_TRUE(lease.Renew(absl::Minutes(1)).ok());
    path = lease.path();
    number = Read(path)->number;
  }
  OwnLease next(directory_);
  ASSERT_TRUE(next.Renew(absl::Minutes(1)).ok());
  EXPECT_EQ(next.path(), path);
  EXPECT_GT(Read(path)->number, number);
}

TEST_F(OwnLeaseTest, TheNextAgentBeginsATermAfterALapse) {
  std::string path;
  {
    OwnLease lease(directory_);
    ASSERT_TRUE(lease.Renew(absl::ZeroDuration()).ok());
    path = lease.path();
  }
  OwnLease next(directory_);
  ASSERT_TRUE(next.Renew(absl::Minutes(1)).ok());
  EXPECT_NE(next.path(), path);
  EXPECT_EQ(CountFiles(), 1);
}

TEST_F(OwnLeaseTest, ADirectoryThatIsGoneIsAnError) {
  OwnLease lease(directory_ + "/gone");
  EXPECT_FALSE(lease.Renew(absl::Minutes(1)).ok());
}

TEST(FenceDelayTest, AddsUpItsParts) {
  EXPECT_EQ(FenceDelay(absl::Seconds(10), 1), absl::Seconds(10 + 1 + 5 + 5));
  EXPECT_EQ(FenceDelay(absl::Seconds(10), 2), absl::Seconds(10 + 1 + 5 + 10));
}

}  // namespace
}  // namespace muster::machines
