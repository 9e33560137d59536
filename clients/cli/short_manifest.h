// A Kubernetes manifest in the few lines that differ between jobs.
#ifndef MUSTER_CLIENTS_CLI_SHORT_MANIFEST_H_
#define MUSTER_CLIENTS_CLI_SHORT_MANIFEST_H_

#include <optional>
#include <string>
#include <string_view>

namespace muster::cli {

// Its Job with image, pods, resources, queue and volumes, and what is made with it, in lines for a
// page. None if the text is no manifest of a whole Job, e.g. because it was cut.
std::optional<std::string> ShortManifest(std::string_view submission);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SHORT_MANIFEST_H_
