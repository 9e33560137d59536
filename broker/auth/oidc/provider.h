// The keys of an identity provider, as fresh as they have to be. A thread of its own fetches them:
// nobody who needs a key waits for the network.
//
// Any thread may use it. Keys that were good stay in use while the provider is away.
#ifndef MUSTER_BROKER_AUTH_OIDC_PROVIDER_H_
#define MUSTER_BROKER_AUTH_OIDC_PROVIDER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/auth/oidc/key_set.h"
#include "oidc/discovery.h"
#include "oidc/https.h"
#include "sync/mutex.h"

namespace muster::oidc {

// Keys are fetched again after the time that the provider says (max-age), within these bounds; a
// revoked key is forgotten within the longest one.
inline constexpr absl::Duration kMinKeyAge = absl::Minutes(1);
inline constexpr absl::Duration kMaxKeyAge = absl::Hours(1);
inline constexpr absl::Duration kDefaultKeyAge = absl::Minutes(5);
// The least time between two fetches: after a failure, and for a key that nobody knows, so that
// forged tokens cause no storm of questions.
inline constexpr absl::Duration kFetchPause = absl::Seconds(5);

using Keys = std::vector<SigningKey>;

struct ProviderOptions {
  std::string issuer{};
  std::string ca{};  // as in HttpsRequest
  Exchanger exchange = Exchange;
  absl::Duration fetch_pause = kFetchPause;
};

class Provider {
 public:
  // Begins to fetch.
  explicit Provider(ProviderOptions options);
  ~Provider();

  // Never returns null; the keys are empty until the provider has answered.
  std::shared_ptr<const Keys> keys() const;
  // Asks for a fetch: a token names a key that is not there.
  void Want();
  // Ends the thread.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Fetched {
    Keys keys;
    absl::Duration age;  // they are fetched again after this time
  };

  void Run();
  absl::StatusOr<Fetched> Fetch() const;
  // Returns the time until the next fetch.
  absl::Duration Take(absl::StatusOr<Fetched> fetched);

  const ProviderOptions options_;
  std::atomic<bool> is_stopping_ = false;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const Keys> keys_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Keys>();
  bool is_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_away_ ABSL_GUARDED_BY(mutex_) = false;  // the last fetch has failed
  std::thread thread_;
};

}  // namespace muster::oidc

#endif  // MUSTER_BROKER_AUTH_OIDC_PROVIDER_H_
