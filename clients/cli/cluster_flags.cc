#include "clients/cli/cluster_flags.h"

#include <string>

#include "clients/cli/options.h"

namespace muster::cli {

void AddClusterFlags(CLI::App* clusters, Invocation* out) {
  clusters
      ->add_option("NAME", out->cluster_words,
                   "A cluster's name; before it: invite, revoke, cordon, drain or uncordon")
      ->expected(1, 2)
      ->each([](const std::string& text) { CheckNotEmpty("NAME", text); });
  AddText(clusters, "--reason", "TEXT", "With cordon and drain: the reason, for those who wait",
          [out](const std::string& reason) { out->reason = reason; });
}

}  // namespace muster::cli
