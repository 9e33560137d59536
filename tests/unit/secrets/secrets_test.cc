#include "broker/secrets/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "broker/secrets/secret_file.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/sqlite.h"

namespace muster::secrets {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Id kHf = {OwnerKind::kUser, "ada", "hf"};
const Id kTeams = {OwnerKind::kProject, "vision", "hf"};

std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ReasonOf(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  return info ? info->reason() : "";
}

class SecretsTest : public ::testing::Test {
 protected:
  SecretsTest() {
    char name[] = "/tmp/muster-secrets-XXXXXX";
    directory_ = mkdtemp(name);
    options_ = {.database = directory_ / "secrets.db",
                .key_file = directory_ / "secrets.key",
                .credential = {},
                .now = [this] { return now_; }};
    Reopen();
  }
  ~SecretsTest() override {
    secrets_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Reopen() {
    secrets_.reset();
    auto opened = Secrets::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    secrets_ = *std::move(opened);
  }
  void Set(const Id& id, std::string_view value) {
    const auto set = secrets_->Set(id, value, /*for_one_job=*/false);
    ASSERT_TRUE(set.ok()) << set.status();
  }
  std::string Read(const Id& id) const {
    const auto value = secrets_->Read(id);
    return value.ok() ? *value : value.status().ToString();
  }
  size_t KeysInFile() const {
    const std::string text = Content(options_.key_file);
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::filesystem::path directory_;
  SecretsOptions options_;
  std::unique_ptr<Secrets> secrets_;
};

TEST_F(SecretsTest, ASecretComesBackWithItsDatesAfterARestart) {
  Set(kHf, "one");
  now_ += absl::Minutes(1);
  Set(kHf, "second");
  Set(kTeams, "the team's");
  Reopen();
  EXPECT_EQ(Read(kHf), "second");
  EXPECT_EQ(Read(kTeams), "the team's");
  const auto record = secrets_->Find(kHf);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->size_bytes, 6u);
  EXPECT_EQ(record->updated_micros - record->created_micros, 60'000'000);
}

TEST_F(SecretsTest, NoFileHasAValue) {
  Set(kHf, "canary-4711");
  secrets_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    EXPECT_THAT(Content(entry.path()), Not(HasSubstr("canary"))) << entry.path();
}

TEST_F(SecretsTest, TheKeyIsMadeWithTheFirstSecretAndForItsOwnerAlone) {
  EXPECT_FALSE(std::filesystem::exists(options_.key_file));
  Set(kHf, "value");
  struct stat info {};
  ASSERT_EQ(stat(options_.key_file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(options_.database.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0077, 0u);
}

TEST_F(SecretsTest, AValueOpensInNoOtherPlace) {
  Set(kHf, "ada's");
  Set(kTeams, "the team's");
  secrets_.reset();
  {
    const auto database = Database::Open(options_.database, SQLITE_OPEN_READWRITE, {});
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)
                    ->Execute("UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE kind "
                              "= 2) WHERE kind = 1")
                    .ok());
  }
  Reopen();
  const auto value = secrets_->Read(kHf);
  EXPECT_TRUE(absl::IsDataLoss(value.status())) << value.status();
  EXPECT_EQ(ReasonOf(value.status()), "SECRET_SEALED");
  EXPECT_THAT(std::string(value.status().message()), HasSubstr("muster secret set hf"));
  EXPECT_EQ(Read(kTeams), "the team's");
}

TEST_F(SecretsTest, ARemovedSecretIsGone) {
  Set(kHf, "value");
  EXPECT_TRUE(secrets_->Remove(kHf).ok());
  EXPECT_TRUE(absl::IsNotFound(secrets_->Read(kHf).status()));
  EXPECT_EQ(ReasonOf(secrets_->Remove(kHf)), "NO_SUCH_SECRET");
  Reopen();
  EXPECT_FALSE(secrets_->Find(kHf).has_value());
}

TEST_F(SecretsTest, ASecretForOneJobTakesNoNameThatIsThere) {
  Set(kHf, "value");
  EXPECT_EQ(ReasonOf(secrets_->Set(kHf, "other", /*for_one_job=*/true).status()), "SECRET_EXISTS");
  EXPECT_EQ(Read(kHf), "value");
}

TEST_F(SecretsTest, AnOwnerHasABoundAndAChangeNeedsNoRoom) {
  for (size_t i = 0; i < kMaxSecretsOfOwner; ++i) {
    const Id id = {OwnerKind::kProject, "vision", "s" + std::to_string(i)};
    ASSERT_TRUE(secrets_->Set(id, "v", false).ok());
  }
  EXPECT_EQ(ReasonOf(secrets_->Set(kTeams, "v", false).status()), "TOO_MANY_SECRETS");
  EXPECT_TRUE(secrets_->Set({OwnerKind::kProject, "vision", "s0"}, "w", false).ok());
  EXPECT_TRUE(secrets_->Set(kHf, "v", false).ok());
  ASSERT_TRUE(secrets_->Remove({OwnerKind::kProject, "vision", "s1"}).ok());
  EXPECT_TRUE(secrets_->Set(kTeams, "v", false).ok());
}

TEST_F(SecretsTest, WithoutTheKeyNothingIsReadAndTheNamesAreThere) {
  Set(kHf, "value");
  const std::string key = Content(options_.key_file);
  std::filesystem::remove(options_.key_file);
  Reopen();
  EXPECT_TRUE(secrets_->Find(kHf).has_value());
  EXPECT_EQ(ReasonOf(secrets_->Read(kHf).status()), "SECRETS_LOCKED");
  EXPECT_EQ(ReasonOf(secrets_->Set(kTeams, "v", false).status()), "SECRETS_LOCKED");
  EXPECT_FALSE(std::filesystem::exists(options_.key_file)) << "another key would hide the mistake";
  std::ofstream(options_.key_file) << key;
  chmod(options_.key_file.c_str(), 0600);
  Reopen();
  EXPECT_EQ(Read(kHf), "value");
}

TEST_F(SecretsTest, AKeyThatIsWrongHalfOrOpenToOthersIsToldSo) {
  Set(kHf, "value");
  const std::string key = Content(options_.key_file);
  const std::pair<std::string, std::string> bad[] = {
      {std::string(64, '0') + "\n", "does not open the secret hf of ada"},
      {key.substr(0, 40), "64 hexadecimal digits"},
      {"", "64 hexadecimal digits"},
      {std::string(64, 'x') + "\n", "64 hexadecimal digits"}};
  for (const auto& [text, problem] : bad) {
    std::ofstream(options_.key_file, std::ios::trunc) << text;
    Reopen();
    EXPECT_THAT(std::string(secrets_->Read(kHf).status().message()), HasSubstr(problem));
  }
  std::ofstream(options_.key_file, std::ios::trunc) << key;
  chmod(options_.key_file.c_str(), 0644);
  Reopen();
  EXPECT_THAT(std::string(secrets_->Read(kHf).status().message()), HasSubstr("chmod 600"));
}

TEST_F(SecretsTest, ARotationSealsAllWithANewKeyAndForgetsTheOldOne) {
  Set(kHf, "value");
  Set(kTeams, "the team's");
  const std::string old = Content(options_.key_file);
  const auto count = secrets_->RotateKey();
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, 2u);
  EXPECT_EQ(KeysInFile(), 1u);
  EXPECT_NE(Content(options_.key_file), old);
  EXPECT_EQ(Read(kHf), "value");
  Reopen();
  EXPECT_EQ(Read(kHf), "value");
  EXPECT_EQ(Read(kTeams), "the team's");
  std::ofstream(options_.key_file, std::ios::trunc) << old;
  Reopen();
  EXPECT_EQ(ReasonOf(secrets_->Read(kHf).status()), "SECRETS_LOCKED");
}

TEST_F(SecretsTest, ARotationThatIsKilledAnywhereLosesNothing) {
  constexpr int kSecrets = 40;
  const auto id = [](int i) { return Id{OwnerKind::kUser, "ada", "s" + std::to_string(i)}; };
  for (int i = 0; i < kSecrets; ++i) Set(id(i), std::string(2000, 'v') + std::to_string(i));
  secrets_.reset();
  size_t with_two_keys = 0;
  // The blows fall on all parts of a rotation, because each child rotates until it is killed.
  for (int blow = 0; blow < 60; ++blow) {
    const pid_t child = fork();
    if (child == 0) {
      auto opened = Secrets::Open(options_);
      while (opened.ok() && (*opened)->RotateKey().ok()) {
      }
      _exit(1);
    }
    usleep(static_cast<useconds_t>(5'000 + 1'700 * blow));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a rotation failed";
    with_two_keys += KeysInFile() == 2 ? 1 : 0;
    Reopen();
    for (int i = 0; i < kSecrets; ++i)
      ASSERT_EQ(Read(id(i)), std::string(2000, 'v') + std::to_string(i)) << blow;
    EXPECT_EQ(KeysInFile(), 1u);
    secrets_.reset();
  }
  EXPECT_GT(with_two_keys, 0u) << "no blow fell within a rotation";
}

TEST_F(SecretsTest, ACredentialWinsAndItsFirstKeyIsThePresentOne) {
  const std::string old_key(64, 'a');
  const std::string new_key(64, 'b');
  options_.credential = directory_ / "credential";
  const auto give = [&](const std::string& keys) {
    std::filesystem::remove(options_.credential);
    std::ofstream(options_.credential) << keys;
    chmod(options_.credential.c_str(), 0440);
    Reopen();
  };
  give(old_key + "\n");
  Set(kHf, "value");
  EXPECT_FALSE(std::filesystem::exists(options_.key_file));
  EXPECT_THAT(std::string(secrets_->RotateKey().status().message()), HasSubstr("credential"));
  give(new_key + "\n" + old_key + "\n");
  EXPECT_EQ(Read(kHf), "value");
  give(new_key + "\n");
  EXPECT_EQ(Read(kHf), "value");
}

TEST_F(SecretsTest, AListGoesOnBehindAPlace) {
  Set(kHf, "v");
  Set({OwnerKind::kUser, "bob", "key"}, "v");
  Set(kTeams, "v");
  const auto all = [](const Record&) { return true; };
  const auto first = secrets_->List(std::nullopt, 2, all);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].id, kHf);
  const auto rest = secrets_->List(first[1].id, 10, all);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].id, kTeams);
}

}  // namespace
}  // namespace muster::secrets
