#include "broker/auth/tokens.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "contract/errors.h"
#include "daemon/sqlite.h"
#include "digest/token_text.h"

namespace muster::auth {
namespace {

class TokensTest : public ::testing::Test {
 protected:
  TokensTest() : directory_(std::filesystem::temp_directory_path() / Name()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    Reopen();
  }
  ~TokensTest() override {
    tokens_.reset();
    std::filesystem::remove_all(directory_);
  }

  static std::string Name() {
    return "muster-tokens-" + std::to_string(getpid()) + "-" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  std::string path() const { return directory_ / "tokens.db"; }

  void Reopen() {
    tokens_.reset();
    auto opened = Tokens::Open(path(), [this] { return now_; });
    ASSERT_TRUE(opened.ok()) << opened.status();
    tokens_ = *std::move(opened);
  }
  MadeToken Make(const std::string& name, const std::string& user = "ada", uint64_t maker = 0) {
    auto made = tokens_->Create({.name = name,
                                 .user = user,
                                 .role = Role::kSubmitter,
                                 .lifetime = absl::Hours(1),
                                 .maker = maker});
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : MadeToken();
  }
  static std::string ReasonOf(const absl::Status& status) {
    const auto info = contract::GetErrorInfo(status);
    return info ? info->reason() : "";
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  const std::filesystem::path directory_;
  std::unique_ptr<Tokens> tokens_;
};

TEST_F(TokensTest, ATokenIsFoundByItsTextAlone) {
  const MadeToken made = Make("laptop");
  const FoundToken found = tokens_->Find(made.text);
  EXPECT_EQ(found.standing, Standing::kLive);
  EXPECT_EQ(found.token->record().user, "ada");
  EXPECT_EQ(found.token->record().role, Role::kSubmitter);
  EXPECT_EQ(tokens_->Find(NewTokenText()).standing, Standing::kUnknown);
  EXPECT_EQ(tokens_->Find("").standing, Standing::kUnknown);
}

TEST_F(TokensTest, TokensOutliveTheBroker) {
  const MadeToken kept = Make("kept");
  const MadeToken revoked = Make("revoked");
  ASSERT_TRUE(tokens_->Revoke(revoked.token->record().id).ok());
  Reopen();
  const FoundToken found = tokens_->Find(kept.text);
  EXPECT_EQ(found.standing, Standing::kLive);
  EXPECT_EQ(found.token->record().name, "kept");
  EXPECT_EQ(found.token->record().expires_micros, kept.token->record().expires_micros);
  EXPECT_EQ(tokens_->Find(revoked.text).standing, Standing::kRevoked);
}

TEST_F(TokensTest, TheFileHasNoSecretAndIsForItsOwnerOnly) {
  const MadeToken made = Make("canary");
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(bytes.find(made.text.substr(4)), bytes.npos) << entry.path();
    struct stat info {};
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << entry.path();
  }
}

TEST_F(TokensTest, ATokenEndsAtItsTime) {
  const MadeToken made = Make("short");
  now_ += absl::Hours(1) - absl::Microseconds(1);
  EXPECT_EQ(tokens_->Find(made.text).standing, Standing::kLive);
  now_ += absl::Microseconds(1);
  EXPECT_EQ(tokens_->Find(made.text).standing, Standing::kExpired);
  EXPECT_FALSE(made.token->IsLive(now_));
}

TEST_F(TokensTest, ARevokedTokenIsSeenByThoseWhoHoldIt) {
  const MadeToken made = Make("gone");
  const auto held = tokens_->Find(made.text).token;
  const auto revoked = tokens_->Revoke(made.token->record().id);
  ASSERT_TRUE(revoked.ok()) << revoked.status();
  EXPECT_EQ(revoked->size(), 1u);
  EXPECT_FALSE(held->IsLive(now_));
  EXPECT_EQ(tokens_->Find(made.text).standing, Standing::kRevoked);
  // Once more changes nothing.
  EXPECT_TRUE(tokens_->Revoke(made.token->record().id)->empty());
  EXPECT_EQ(ReasonOf(tokens_->Revoke(99).status()), "NO_SUCH_TOKEN");
}

TEST_F(TokensTest, TokensEndWithTheTokenThatMadeThem) {
  const MadeToken first = Make("first");
  const MadeToken child = Make("child", "ada", first.token->record().id);
  const MadeToken grandchild = Make("grandchild", "ada", child.token->record().id);
  const MadeToken other = Make("other");
  EXPECT_EQ(tokens_->Revoke(first.token->record().id)->size(), 3u);
  EXPECT_EQ(tokens_->Find(grandchild.text).standing, Standing::kRevoked);
  EXPECT_EQ(tokens_->Find(other.text).standing, Standing::kLive);
  Reopen();
  EXPECT_EQ(tokens_->Find(grandchild.text).standing, Standing::kRevoked);
}

TEST_F(TokensTest, ATokenThatHasEndedMakesNone) {
  const MadeToken maker = Make("maker");
  const uint64_t id = maker.token->record().id;
  ASSERT_TRUE(tokens_->Revoke(id).ok());
  for (const uint64_t ended : {id, uint64_t{99}}) {
    const absl::Status status =
        tokens_->Create({.name = "child", .user = "ada", .maker = ended}).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  }
}

TEST_F(TokensTest, OneLiveTokenOfAUserHasAName) {
  const MadeToken made = Make("laptop");
  Make("laptop", "grace");
  const absl::Status status = tokens_->Create({.name = "laptop", .user = "ada"}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_EQ(ReasonOf(status), "TOKEN_EXISTS");
  ASSERT_TRUE(tokens_->Revoke(made.token->record().id).ok());
  Make("laptop");
}

TEST_F(TokensTest, AUserHasABoundAndEndedTokensMakeRoom) {
  const MadeToken first = Make("0");
  for (size_t i = 1; i < kMaxTokensOfUser; ++i) Make(std::to_string(i));
  const absl::Status status = tokens_->Create({.name = "more", .user = "ada"}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ReasonOf(status), "TOO_MANY_TOKENS");
  Make("others are free", "grace");
  ASSERT_TRUE(tokens_->Revoke(first.token->record().id).ok());
  const MadeToken more = Make("more");
  EXPECT_EQ(tokens_->Find(first.text).standing, Standing::kUnknown);
  EXPECT_GT(more.token->record().id, kMaxTokensOfUser);
  EXPECT_EQ(tokens_->List().size(), kMaxTokensOfUser + 1);
  Reopen();
  EXPECT_EQ(tokens_->List().size(), kMaxTokensOfUser + 1);
}

TEST_F(TokensTest, LastUsesAreWrittenWhenAsked) {
  const MadeToken made = Make("used");
  const absl::Time used = now_ + absl::Minutes(5);
  now_ = used;
  EXPECT_EQ(tokens_->Find(made.text).standing, Standing::kLive);
  ASSERT_TRUE(tokens_->WriteUses().ok());
  now_ += absl::Minutes(1);
  EXPECT_EQ(tokens_->Find(made.text).standing, Standing::kLive);
  EXPECT_EQ(tokens_->List().front()->used_micros(), absl::ToUnixMicros(now_));
  Reopen();
  EXPECT_EQ(tokens_->List().front()->used_micros(), absl::ToUnixMicros(used));
}

TEST_F(TokensTest, AFileOfANewerReleaseIsRefused) {
  tokens_.reset();
  {
    auto database = Database::Open(path(), SQLITE_OPEN_READWRITE, {});
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->Execute("PRAGMA user_version = 2").ok());
  }
  const auto opened = Tokens::Open(path(), [this] { return now_; });
  EXPECT_TRUE(absl::IsFailedPrecondition(opened.status())) << opened.status();
}

TEST_F(TokensTest, LooksWhileOthersChange) {
  const MadeToken made = Make("looked at");
  std::thread changer([this] {
    for (int i = 0; i < 20; ++i) {
      const MadeToken other = Make(std::to_string(i));
      EXPECT_TRUE(tokens_->Revoke(other.token->record().id).ok());
    }
  });
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(tokens_->Find(made.text).standing, Standing::kLive);
  }
  changer.join();
}

}  // namespace
}  // namespace muster::auth
