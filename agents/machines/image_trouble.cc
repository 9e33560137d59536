#include "agents/machines/image_trouble.h"

#include <algorithm>
#include <array>
#include <span>

namespace muster::machines {
namespace {

// A registry has said so: waiting does not help, whatever else is in the words. Sources: the errors
// of the distribution protocol, and how the tools tell them.
constexpr std::array<std::string_view, 11> kRefusals = {"manifest unknown",
                                                        "name unknown",
                                                        "not found: manifest",
                                                        "repository does not exist",
                                                        "unauthorized",
                                                        "authentication required",
                                                        "access to the resource is denied",
                                                        "invalid reference format",
                                                        "error code: 401",
                                                        "error code: 403",
                                                        "error code: 404"};

// The registry does not answer, or limits how much is pulled. Sources: Go's net and net/http, which
// podman, docker and apptainer use, curl, which enroot does, and the registries' own answers. No
// name of an image has a blank in it.
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
  if (HasAny(words, kDiskFull)) {
    return {.is_passing = true,
            .remedy =
                "free disk space where the machine keeps images, or have its operator do it; "
                "then submit the job again"};
  }
  if (HasAny(words, kRegistrys) && !HasAny(words, kRefusals)) {
    return {.is_passing = true,
            .remedy =
                "check the registry's name; if it is right, submit the job again later, or "
                "tell the machine's operator that it cannot be reached from there"};
  }
  return {.is_passing = false,
          .remedy =
              "check the image's name and tag, that it can be pulled without a password or "
              "that the agent's user there is logged in to its registry"};
}

}  // namespace muster::machines
