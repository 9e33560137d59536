#include "agents/users/user_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "daemon/write_file.h"

namespace muster::users {
namespace {

using testing::HasSubstr;

TEST(UserMapTest, TheFirstLineThatFitsCounts) {
  constexpr std::string_view kMap =
      "# the lab\n\noidc:alice@lab.org: al\noidc:*@lab.org: \\1\nsa:ci: robot\n";
  EXPECT_EQ(LocalUserIn(kMap, "oidc:alice@lab.org").value(), "al");
  EXPECT_EQ(LocalUserIn(kMap, "oidc:bob@lab.org").value(), "bob");
  EXPECT_EQ(LocalUserIn(kMap, "sa:ci").value(), "robot");
}

TEST(UserMapTest, AUserInNoLineIsNobody) {
  const auto user = LocalUserIn("oidc:*@lab.org: \\1\n", "oidc:eve@evil.org");
  EXPECT_EQ(user.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(user.status().message(), HasSubstr("oidc:eve@evil.org"));
}

TEST(UserMapTest, NoLineLeadsToRootANumberAnOptionOrAPath) {
  for (const std::string_view name : {"root", "0", "1000", "-u", ".ssh", "a/b", "a b", "Ä"}) {
    const std::string user = "oidc:" + std::string(name) + "@lab.org";
    EXPECT_EQ(LocalUserIn("oidc:*@lab.org: \\1\n", user).status().code(),
              absl::StatusCode::kPermissionDenied)
        << name;
  }
  EXPECT_EQ(LocalUserIn("alice: root\n", "alice").status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(UserMapTest, ALineThatIsNoneRefusesAllAndIsNamed) {
  for (const std::string_view line : {"alice", "alice:", ": al", "*@*: \\1"}) {
    const auto user = LocalUserIn("# first\n" + std::string(line) + "\n", "alice");
    EXPECT_EQ(user.status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(user.status().message(), HasSubstr("line 2"));
  }
}

TEST(UserMapTest, WithoutAFileTheNamesAreTheSame) {
  EXPECT_EQ(LocalUserOf("", "alice").value(), "alice");
  EXPECT_EQ(LocalUserOf("", "root").status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(UserMapTest, AFileThatOthersMayChangeIsRefused) {
  const std::string path = testing::TempDir() + "/users.map";
  ASSERT_TRUE(WriteFileWhole(path, "alice: al\n", 0644).ok());
  EXPECT_EQ(LocalUserOf(path, "alice").value(), "al");
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  const auto user = LocalUserOf(path, "alice");
  EXPECT_EQ(user.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(user.status().message(), HasSubstr(path));
}

TEST(UserMapTest, AFileThatIsNotThereIsNamed) {
  const auto user = LocalUserOf("/nowhere/users", "alice");
  EXPECT_EQ(user.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(user.status().message(), HasSubstr("/nowhere/users"));
}

}  // namespace
}  // namespace muster::users
