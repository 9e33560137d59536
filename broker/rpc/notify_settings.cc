#include "broker/rpc/notify_settings.h"

#include <fmt/format.h>

#include <utility>

#include "absl/status/statusor.h"
#include "broker/notify/webhook_file.h"
#include "contract/text.h"

namespace muster::broker {

std::vector<Setting> NotifySettings(Config* config) {
  return {
      {"notify.webhooks", "file in YAML with the webhooks that are told of steps of jobs [none]",
       TextInto(&config->webhook_file)},
  };
}

absl::Status FinishNotify(Config* config) {
  if (config->webhook_file.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<notify::Webhook>> webhooks =
      notify::ReadWebhooks(config->webhook_file);
  if (!webhooks.ok()) {
    return absl::InvalidArgumentError(
        ToAbsl(fmt::format("notify.webhooks: {}", ToStd(webhooks.status().message()))));
  }
  config->broker.notify.webhooks = *std::move(webhooks);
  return absl::OkStatus();
}

}  // namespace muster::broker
