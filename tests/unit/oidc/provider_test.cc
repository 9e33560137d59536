#include "broker/auth/oidc/provider.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <string>
#include <utility>
#include <vector>

#include "broker/auth/oidc/verifier.h"
#include "signer.h"
#include "sync/mutex.h"

namespace muster::oidc {
namespace {

constexpr char kIssuer[] = "https://id.example";

// A provider that answers from memory, and on which a test can wait.
class Site {
 public:
  void Serve(std::string keys) {
    const MutexLock lock(mutex_);
    keys_ = std::move(keys);
  }
  void SetIssuer(std::string issuer) {
    const MutexLock lock(mutex_);
    issuer_ = std::move(issuer);
  }
  void AwaitFetches(int count) {
    MutexLock lock(mutex_);
    while (fetches_ < count) lock.Wait(changed_);
  }
  int fetches() {
    const MutexLock lock(mutex_);
    return fetches_;
  }

  absl::StatusOr<HttpsAnswer> Answer(const HttpsRequest& request) {
    const MutexLock lock(mutex_);
    if (request.url == "https://id.example/.well-known/openid-configuration") {
      // A fetch begins here; the one before was taken.
      ++fetches_;
      changed_.notify_all();
      return HttpsAnswer{200,
                         nlohmann::json{{"issuer", issuer_},
                                        {"jwks_uri", "https://id.example/keys"},
                                        {"token_endpoint", "https://id.example/token"}}
                             .dump(),
                         {}};
    }
    EXPECT_EQ(request.url, "https://id.example/keys");
    if (keys_.empty()) return absl::UnavailableError("nobody answers");
    return HttpsAnswer{200, keys_, absl::Hours(24)};
  }

  ProviderOptions Options() {
    return {.issuer = kIssuer,
            .exchange = [this](const HttpsRequest& request) { return Answer(request); },
            .fetch_pause = absl::Milliseconds(1)};
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  std::string issuer_ ABSL_GUARDED_BY(mutex_) = kIssuer;
  std::string keys_ ABSL_GUARDED_BY(mutex_);  // empty: away
  int fetches_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(Provider, IsAskedUntilItAnswers) {
  Site site;
  Provider provider(site.Options());
  site.AwaitFetches(3);
  EXPECT_TRUE(provider.keys()->empty());
  site.Serve(SetOf({Signer(Algorithm::kEs256, "a").Jwk()}));
  while (provider.keys()->empty()) {
  }
  EXPECT_EQ(provider.keys()->front().id, "a");
}

TEST(Provider, TakesNoDocumentOfAnotherIssuer) {
  Site site;
  site.SetIssuer("https://id.example/");
  site.Serve(SetOf({Signer(Algorithm::kEs256, "a").Jwk()}));
  Provider provider(site.Options());
  site.AwaitFetches(3);
  EXPECT_TRUE(provider.keys()->empty());
}

TEST(Provider, AKeyThatIsMissingIsFetchedAndOldOnesStayWhileItIsAway) {
  Site site;
  const Signer old_key(Algorithm::kEs256, "old");
  const Signer new_key(Algorithm::kEs256, "new");
  site.Serve(SetOf({old_key.Jwk()}));
  Provider provider(site.Options());
  while (provider.keys()->empty()) {
  }
  const VerifierOptions options{.jwt = {kIssuer, "muster", absl::ZeroDuration()}};
  const Verifier verifier(std::vector<Verifier::Issuer>{{&options, &provider}});
  const auto fault = [&](const Signer& signer) {
    return verifier
        .Recognise(
            signer.Token(nlohmann::json{
                {"iss", kIssuer}, {"aud", "muster"}, {"email", "ada@example.org"}, {"exp", 2}}),
            absl::FromUnixSeconds(1))
        .person.fault;
  };
  EXPECT_EQ(fault(old_key), Fault::kNone);
  EXPECT_EQ(site.fetches(), 1);

  site.Serve("");
  EXPECT_EQ(fault(new_key), Fault::kUnknownKey);
  site.AwaitFetches(3);
  EXPECT_EQ(fault(old_key), Fault::kNone);

  site.Serve(SetOf({new_key.Jwk()}));
  while (fault(new_key) != Fault::kNone) {
  }
  EXPECT_EQ(fault(old_key), Fault::kUnknownKey);
}

TEST(Discovery, NamesAddressesThatNobodyElseReads) {
  const auto read = [](const std::string& name, const std::string& value) {
    nlohmann::json document = {{"issuer", kIssuer},
                               {"jwks_uri", "https://id.example/keys"},
                               {"token_endpoint", "https://id.example/token"}};
    document[name] = value;
    return ReadDiscovery(document.dump(), kIssuer).ok();
  };
  EXPECT_TRUE(read("x", "y"));
  for (const char* name : {"jwks_uri", "token_endpoint", "device_authorization_endpoint"}) {
    for (const char* url : {"http://id.example/x", "file:///etc/passwd", "https://", "https://a@b/",
                            "http://127.0.0.1.evil/", "http://localhostile/", "ftp://id.example"}) {
      EXPECT_FALSE(read(name, url)) << name << " " << url;
    }
    EXPECT_TRUE(read(name, "http://127.0.0.1:80/x")) << name;
  }
  EXPECT_FALSE(read("jwks_uri", ""));
  EXPECT_TRUE(read("device_authorization_endpoint", ""));
  EXPECT_FALSE(CheckIssuer("https://id.example?x").ok());
}

}  // namespace
}  // namespace muster::oidc
