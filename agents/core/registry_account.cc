#include "agents/core/registry_account.h"

#include "absl/status/statusor.h"
#include "contract/errors.h"
#include "contract/image.h"
#include "fmt/format.h"

namespace muster::agents {
namespace {

// The source is https://docs.nvidia.com/ngc/gpu-cloud/ngc-private-registry-user-guide/.
constexpr std::string_view kNvidiaRegistry = "nvcr.io";
constexpr std::string_view kNvidiaUser = "$oauthtoken";

}  // namespace

absl::Status CompleteRegistryAccount(std::string* registry, std::string* user) {
  // An image's name has the same first part; the rest only makes it one.
  const absl::StatusOr<contract::Image> image = contract::ParseImage(*registry + "/a/b:1");
  if (!image.ok() || image->repository != "a/b" || image->registry.empty()) {
    return contract::BadField(
        "registry",
        fmt::format("\"{}\" is not a registry's name; use HOST or HOST:PORT, for example {}",
                    *registry, kNvidiaRegistry));
  }
  *registry = image->registry;
  if (*registry != kNvidiaRegistry) return absl::OkStatus();
  if (user->empty()) *user = kNvidiaUser;
  if (*user == kNvidiaUser) return absl::OkStatus();
  return contract::BadField("user",
                            fmt::format("{} takes no user but {} (leave it out, or put it into "
                                        "single quotes), with an API key as the secret",
                                        kNvidiaRegistry, kNvidiaUser));
}

}  // namespace muster::agents
