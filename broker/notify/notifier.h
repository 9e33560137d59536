// Tells all receivers of steps of jobs, each by a courier of its own. Make, Start and Stop belong
// to the owner; counts() is for any thread.
#ifndef MUSTER_BROKER_NOTIFY_NOTIFIER_H_
#define MUSTER_BROKER_NOTIFY_NOTIFIER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/app/services.h"
#include "broker/notify/courier.h"
#include "broker/notify/webhook.h"

namespace muster::notify {

struct NotifierOptions {
  std::vector<Webhook> webhooks{};
  std::string directory{};  // of the webhooks' files; made if it is missing
};

class Notifier {
 public:
  // Reads the webhooks' files. `services` and what is behind them outlive the notifier.
  static absl::StatusOr<std::unique_ptr<Notifier>> Make(const NotifierOptions& options,
                                                        const broker::Services& services,
                                                        absl::Duration job_retention);

  void Start();
  // Waits for the threads, all together about a second.
  void Stop();
  std::vector<WebhookCounts> counts() const;

 private:
  explicit Notifier(std::vector<std::unique_ptr<Courier>> couriers)
      : couriers_(std::move(couriers)) {}

  const std::vector<std::unique_ptr<Courier>> couriers_;
};

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_NOTIFIER_H_
