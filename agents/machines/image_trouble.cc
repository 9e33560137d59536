#include "agents/machines/image_trouble.h"

#include <algorithm>
#include <array>
#include <span>

namespace muster::machines {
namespace {

// A registry has said so, or the tool: waiting does not help, whatever else is in the words.
// Sources: the errors of the distribution protocol, and how the tools tell them.
struct Sign {
  std::string_view words;
  v1::FailureCode code;
};
constexpr std::array kRefusals = {
    Sign{"manifest unknown", v1::FAILURE_CODE_IMAGE_NOT_FOUND},
    Sign{"name unknown", v1::FAILURE_CODE_IMAGE_NOT_FOUND},
    Sign{"not found: manifest", v1::FAILURE_CODE_IMAGE_NOT_FOUND},
    Sign{"repository does not exist", v1::FAILURE_CODE_IMAGE_ACCESS_DENIED},
    Sign{"error code: 404", v1::FAILURE_CODE_IMAGE_NOT_FOUND},
    Sign{"unauthorized", v1::FAILURE_CODE_IMAGE_ACCESS_DENIED},
    Sign{"authentication required", v1::FAILURE_CODE_IMAGE_ACCESS_DENIED},
    Sign{"access to the resource is denied", v1::FAILURE_CODE_IMAGE_ACCESS_DENIED},
    Sign{"error code: 401", v1::FAILURE_CODE_IMAGE_ACCESS_DENIED},
    Sign{"error code: 403", v1::FAILURE_CODE_IMAGE_ACCESS_DENIED},
    Sign{"invalid reference format", v1::FAILURE_CODE_IMAGE_NAME_INVALID}};

// The registry does not answer, or limits how much is pulled. The sources are Go's net and
// net/http, which podman, docker and apptainer use, curl, which enroot does, and the registries'
// own answers. No name of an image has a blank in it.
constexpr std::array<std::string_view, 28> kRegistrys = {"toomanyrequests: ",
                                                         "Too Many Requests",
                                                         "too many requests",
                                                         "rate limit",
                                                         "no such host",
                                                         "server misbehaving",
                                                         "Temporary failure in name resolution",
                                                         "i/o timeout",
                                                         "TLS handshake timeout",
                                                         "deadline exceeded",
                                                         "(Client.Timeout exceeded",
                                                         " timed out",
                                                         "connection refused",
                                                         "connection reset",
                                                         "no route to host",
                                                         "network is unreachable",
                                                         ": EOF",
                                                         "unexpected EOF",
                                                         "Internal Server Error",
                                                         "Bad Gateway",
                                                         "Service Unavailable",
                                                         "Gateway Timeout",
                                                         "Could not resolve host",
                                                         "Failed to connect to",
                                                         "Connection refused",
                                                         "Connection reset",
                                                         "returned error code: 429",
                                                         "returned error code: 5"};

// Go's word; and that of C programs.
constexpr std::array<std::string_view, 2> kDiskFull = {"no space left on device",
                                                       "No space left on device"};

bool HasAny(std::string_view words, std::span<const std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return words.find(part) != words.npos; });
}

}  // namespace

ImageTrouble ExplainImageTrouble(std::string_view words) {
  if (HasAny(words, kDiskFull))
    return {.is_passing = true, .code = v1::FAILURE_CODE_NO_ROOM_FOR_IMAGE};
  const auto* refusal = std::find_if(kRefusals.begin(), kRefusals.end(), [&](const Sign& sign) {
    return words.find(sign.words) != words.npos;
  });
  if (refusal != kRefusals.end()) return {.code = refusal->code};
  if (HasAny(words, kRegistrys))
    return {.is_passing = true, .code = v1::FAILURE_CODE_REGISTRY_UNAVAILABLE};
  return {};
}

}  // namespace muster::machines
