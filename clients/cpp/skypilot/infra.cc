#include "clients/cpp/skypilot/infra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::client::skypilot {
namespace {

// The clouds that SkyPilot's releases know.
constexpr std::string_view kClouds[] = {"aws",
                                        "azure",
                                        "gcp",
                                        "oci",
                                        "ibm",
                                        "lambda",
                                        "runpod",
                                        "cudo",
                                        "scp",
                                        "fluidstack",
                                        "vast",
                                        "do",
                                        "nebius",
                                        "paperspace",
                                        "vsphere",
                                        "hyperbolic",
                                        "seeweb",
                                        "shadeform",
                                        "primeintellect",
                                        "verda",
                                        "mithril",
                                        "yotta",
                                        "*"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

absl::Status BadInfra(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(
      fmt::format("{} {}; use slurm/NAME, slurm/NAME/PARTITION, k8s/NAME or ssh/NAME, with a name "
                  "that muster clusters lists",
                  contract::Quoted(text), what));
}

std::string Named(std::string_view part) { return part == "*" ? "" : std::string(part); }

}  // namespace

absl::StatusOr<Infra> ParseInfra(std::string_view text) {
  const std::vector<std::string_view> parts = contract::Split(text, '/');
  for (std::string_view part : parts) {
    if (part.empty() || part.find(' ') != part.npos)
      return BadInfra(text, "has an empty part or a blank");
  }
  const std::string first = Lower(parts.empty() ? text : parts[0]);
  Infra infra;
  if (first == "k8s" || first == "kubernetes") {
    infra.kind = Infra::Kind::kKubernetes;
    if (parts.size() > 1) infra.cluster = Named(text.substr(parts[0].size() + 1));
    return infra;
  }
  if (parts.size() > 3) return BadInfra(text, "has more than three parts");
  if (first == "slurm") {
    infra.kind = Infra::Kind::kSlurm;
    if (parts.size() > 1) infra.cluster = Named(parts[1]);
    if (parts.size() > 2) infra.pool = Named(parts[2]);
    return infra;
  }
  if (first == "ssh") {
    if (parts.size() != 2 || parts[1] == "*")
      return BadInfra(text, "does not name one cluster of machines");
    infra.kind = Infra::Kind::kMachines;
    infra.cluster = parts[1];
    return infra;
  }
  if (std::find(std::begin(kClouds), std::end(kClouds), first) == std::end(kClouds)) {
    return BadInfra(text, "is no infrastructure that is known");
  }
  infra.kind = first == "*" && parts.size() == 1 ? Infra::Kind::kAny : Infra::Kind::kCloud;
  return infra;
}

}  // namespace muster::client::skypilot
