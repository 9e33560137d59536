// Logins at an identity provider, with one that answers from a list.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients/cpp/login/device_login.h"
#include "clients/cpp/login/kept_login.h"
#include "clients/cpp/login/login_file.h"
#include "clients/cpp/login/token_endpoint.h"
#include "digest/base64url.h"
#include "sync/mutex.h"

namespace muster::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kIssuer[] = "https://id.example";
constexpr char kTokens[] = R"({"id_token":"a.b.c","refresh_token":"r2","expires_in":5})";

std::string ErrorBody(const std::string& error) {
  return fmt::format(R"({{"error":"{}"}})", error);
}

class DeviceLogin : public testing::Test {
 protected:
  DeviceLogin() {
    info_.set_issuer(kIssuer);
    info_.set_client_id("muster");
    info_.set_scopes("openid email");
  }

  absl::StatusOr<oidc::HttpsAnswer> Answer(const oidc::HttpsRequest& request) {
    if (request.url.ends_with("/openid-configuration"))
      return oidc::HttpsAnswer{200, discovery_, {}};
    if (request.url == "https://id.example/device")
      return oidc::HttpsAnswer{device_status_, device_, {}};
    EXPECT_EQ(request.url, "https://id.example/token");
    if (answers_.empty()) return oidc::HttpsAnswer{400, ErrorBody("authorization_pending"), {}};
    absl::StatusOr<oidc::HttpsAnswer> answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

  absl::StatusOr<Login> LogIn() {
    DeviceLoginOptions options;
    options.exchange = [this](const oidc::HttpsRequest& request) { return Answer(request); };
    options.sleep = [this](absl::Duration wait) {
      waits_.push_back(absl::ToInt64Seconds(wait));
      now_ += wait;
    };
    options.now = [this] { return now_; };
    options.show = [this](const DevicePrompt& prompt) { shown_ = prompt; };
    return LogInByDevice(info_, options);
  }
  void Refuse(const std::string& error) {
    answers_.push_back(oidc::HttpsAnswer{400, ErrorBody(error), {}});
  }
  void Give(const std::string& body) { answers_.push_back(oidc::HttpsAnswer{200, body, {}}); }

  v1::GetLoginInfoResponse info_;
  std::string discovery_ = R"({"issuer":"https://id.example","jwks_uri":"https://id.example/keys",
    "token_endpoint":"https://id.example/token",
    "device_authorization_endpoint":"https://id.example/device"})";
  int device_status_ = 200;
  std::string device_ = R"({"device_code":"d","user_code":"ABCD","expires_in":60,
    "verification_uri":"https://id.example/go"})";
  std::deque<absl::StatusOr<oidc::HttpsAnswer>> answers_;
  std::vector<int64_t> waits_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  DevicePrompt shown_;
};

TEST_F(DeviceLogin, AsksAtThePaceOfTheProviderUntilThePersonIsDone) {
  Refuse("authorization_pending");
  Refuse("slow_down");
  Refuse("authorization_pending");
  Give(kTokens);
  const auto login = LogIn();
  ASSERT_TRUE(login.ok()) << login.status();
  EXPECT_EQ(login->id_token, "a.b.c");
  EXPECT_EQ(login->refresh_token, "r2");
  EXPECT_EQ(shown_.code, "ABCD");
  EXPECT_EQ(shown_.url, "https://id.example/go");
  // A wait is five seconds unless the provider says; "slow_down" adds five for good.
  EXPECT_THAT(waits_, ElementsAre(5, 5, 10, 10));
}

TEST_F(DeviceLogin, TakesTheIntervalWithinBounds) {
  for (const auto& [interval, wait] :
       std::map<std::string, int64_t>{{"2", 2}, {"0", 1}, {"-5", 1}, {"99999", 60}, {"\"x\"", 5}}) {
    waits_.clear();
    device_ = fmt::format(R"({{"device_code":"d","user_code":"A","verification_uri":"u",
      "interval":{}}})",
                          interval);
    Give(kTokens);
    ASSERT_TRUE(LogIn().ok());
    EXPECT_THAT(waits_, ElementsAre(wait)) << interval;
  }
}

TEST_F(DeviceLogin, EachEndHasItsWords) {
  const std::pair<std::string, absl::StatusCode> ends[] = {
      {"access_denied", absl::StatusCode::kPermissionDenied},
      {"expired_token", absl::StatusCode::kDeadlineExceeded},
      {"invalid_grant", absl::StatusCode::kFailedPrecondition}};
  for (const auto& [error, code] : ends) {
    Refuse(error);
    EXPECT_EQ(LogIn().status().code(), code) << error;
  }
  Give(R"({"access_token":"x"})");
  EXPECT_THAT(std::string(LogIn().status().message()), HasSubstr("ID token"));
  // Nobody comes.
  EXPECT_TRUE(absl::IsDeadlineExceeded(LogIn().status()));
}

TEST_F(DeviceLogin, AProviderThatDoesNotAnswerForAWhileIsAskedLessOften) {
  answers_.push_back(absl::UnavailableError("nobody"));
  answers_.push_back(oidc::HttpsAnswer{503, "", {}});
  Give(kTokens);
  EXPECT_TRUE(LogIn().ok());
  EXPECT_THAT(waits_, ElementsAre(5, 10, 20));
  for (int i = 0; i < 20; ++i) answers_.push_back(absl::UnavailableError("nobody"));
  EXPECT_TRUE(absl::IsUnavailable(LogIn().status()));
}

TEST_F(DeviceLogin, SaysWhatTheProviderLacks) {
  device_status_ = 400;
  device_ = R"({"error":"unauthorized_client","error_description":"no\u001b[2Jway"})";
  const std::string words(LogIn().status().message());
  EXPECT_THAT(words, HasSubstr("device flow"));
  EXPECT_EQ(words.find('\x1b'), std::string::npos);
  discovery_ = R"({"issuer":"https://id.example","jwks_uri":"https://id.example/keys",
    "token_endpoint":"https://id.example/token"})";
  EXPECT_THAT(std::string(LogIn().status().message()), HasSubstr("no device flow"));
  info_.clear_issuer();
  EXPECT_THAT(std::string(LogIn().status().message()), HasSubstr("no identity provider"));
}

// ---- the file

std::string TokenUntil(int64_t second) {
  return "h." + ToBase64Url(fmt::format(R"({{"exp":{}}})", second)) + ".s";
}

class KeptLoginTest : public testing::Test {
 protected:
  KeptLoginTest() {
    std::string name = (std::filesystem::temp_directory_path() / "login-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    path_ = directory_ / "logins" / "x.json";
    login_ = {.broker = "unix:/b",
              .issuer = kIssuer,
              .client_id = "muster",
              .token_endpoint = "https://id.example/token",
              .id_token = TokenUntil(1031),
              .refresh_token = "r1"};
    EXPECT_TRUE(WriteLogin(path_, login_).ok());
  }
  ~KeptLoginTest() override { std::filesystem::remove_all(directory_); }

  // A provider whose refresh tokens are good once.
  absl::StatusOr<oidc::HttpsAnswer> Answer(const oidc::HttpsRequest& request) {
    const MutexLock lock(mutex_);
    if (is_away_) return absl::UnavailableError("nobody");
    std::map<std::string, std::string> form(request.form->begin(), request.form->end());
    if (form["refresh_token"] != fmt::format("r{}", uses_ + 1))
      return oidc::HttpsAnswer{400, ErrorBody("invalid_grant"), {}};
    ++uses_;
    return oidc::HttpsAnswer{200,
                             fmt::format(R"({{"id_token":"{}","refresh_token":"r{}"}})",
                                         TokenUntil(5000 + uses_), uses_ + 1),
                             {}};
  }
  std::shared_ptr<KeptLogin> Open() {
    return KeptLogin::Open(
               path_, "unix:/b",
               [this](const oidc::HttpsRequest& request) { return Answer(request); },
               [this] { return absl::FromUnixSeconds(now_.load()); })
        .value();
  }
  int uses() {
    const MutexLock lock(mutex_);
    return uses_;
  }
  void GoAway() {
    const MutexLock lock(mutex_);
    is_away_ = true;
  }

  std::filesystem::path directory_;
  std::string path_;
  Login login_;
  std::atomic<int64_t> now_ = 1000;
  Mutex mutex_;
  int uses_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_away_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(KeptLoginTest, IsRenewedShortlyBeforeItsEnd) {
  const auto kept = Open();
  EXPECT_EQ(kept->Token(), TokenUntil(1031));
  EXPECT_EQ(uses(), 0);
  now_ = 1002;
  EXPECT_EQ(kept->Token(), TokenUntil(5001));
  EXPECT_EQ(kept->Token(), TokenUntil(5001));
  EXPECT_EQ(uses(), 1);
  const auto on_disk = ReadLogin(path_);
  ASSERT_TRUE(on_disk.ok());
  EXPECT_EQ(on_disk->refresh_token, "r2");
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(KeptLoginTest, SeveralUsersAtOnceRenewItOnce) {
  std::vector<std::shared_ptr<KeptLogin>> all;
  for (int i = 0; i < 8; ++i) all.push_back(Open());
  now_ = 1002;
  std::vector<std::thread> threads;
  for (const auto& one : all) {
    threads.emplace_back([&one] { EXPECT_EQ(one->Token(), TokenUntil(5001)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(uses(), 1);
}

TEST_F(KeptLoginTest, ARefusedTokenIsReplacedOnce) {
  const auto kept = Open();
  const std::string refused = kept->Token();
  EXPECT_TRUE(kept->Renew(refused).ok());
  EXPECT_TRUE(kept->Renew(refused).ok());
  EXPECT_EQ(kept->Token(), TokenUntil(5001));
  EXPECT_EQ(uses(), 1);
}

TEST_F(KeptLoginTest, SaysWhyItCannotBeRenewed) {
  login_.refresh_token = "stale";
  ASSERT_TRUE(WriteLogin(path_, login_).ok());
  const auto kept = Open();
  const absl::Status ended = kept->Renew(kept->Token());
  EXPECT_TRUE(absl::IsUnauthenticated(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("muster login"));
  GoAway();
  EXPECT_TRUE(absl::IsUnavailable(kept->Renew(kept->Token())));
  // A token that has not ended is still good for something.
  EXPECT_EQ(kept->Token(), TokenUntil(1031));
  login_.refresh_token.clear();
  ASSERT_TRUE(WriteLogin(path_, login_).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(kept->Renew(kept->Token())));
  std::filesystem::remove(path_);
  EXPECT_THAT(std::string(kept->Renew(kept->Token()).message()), HasSubstr("logged out"));
}

TEST_F(KeptLoginTest, GoesToItsOwnBrokerAlone) {
  EXPECT_TRUE(absl::IsFailedPrecondition(KeptLogin::Open(path_, "unix:/other").status()));
  EXPECT_TRUE(absl::IsNotFound(KeptLogin::Open(path_ + "x", "unix:/b").status()));
}

TEST(EndOfToken, IsThePastIfItCannotBeRead) {
  EXPECT_EQ(EndOfToken(TokenUntil(7)), absl::FromUnixSeconds(7));
  for (const char* text : {"", ".", "..", "a.b", "a.e30.c", "a.!.c", "a.eyJleHAiOiJ4In0.c"})
    EXPECT_EQ(EndOfToken(text), absl::InfinitePast()) << text;
}

}  // namespace
}  // namespace muster::client
