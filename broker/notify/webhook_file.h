// Reads the file that notify.webhooks names: webhooks by name, and the files that they name.
#ifndef MUSTER_BROKER_NOTIFY_WEBHOOK_FILE_H_
#define MUSTER_BROKER_NOTIFY_WEBHOOK_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/notify/webhook.h"

namespace muster::notify {

// A key for HMAC-SHA-256; a shorter one could be guessed.
inline constexpr size_t kMinSecretBytes = 16;
inline constexpr size_t kMaxSecretBytes = 4096;
// Some lines for each of kMaxWebhooks.
inline constexpr size_t kMaxFileBytes = 256 << 10;

// INVALID_ARGUMENT names the place in the file, or the webhook, and the remedy.
absl::StatusOr<std::vector<Webhook>> ReadWebhooks(const std::string& path);
// Does the same for a text; `file` is its name in messages.
absl::StatusOr<std::vector<Webhook>> ParseWebhooks(std::string_view text, std::string_view file);

// Returns the bytes of a file that nobody but its owner may read, without white space at its end.
absl::StatusOr<std::string> ReadSecret(const std::string& path);

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_WEBHOOK_FILE_H_
