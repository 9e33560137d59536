#include "clients/cpp/skypilot/requirement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include "clients/cpp/skypilot/infra.h"
#include "clients/cpp/skypilot/scalar.h"
#include "contract/characters.h"
#include "contract/retry.h"

namespace muster::client::skypilot {
namespace {

// Fields of machines that are rented, and of services.
constexpr const char* kMeaningless[] = {"instance_type",   "use_spot",     "disk_size",
                                        "disk_tier",       "network_tier", "local_disk",
                                        "ports",           "autostop",     "accelerator_args",
                                        "max_hourly_cost", "spot_recovery"};

v1::ClusterKind KindOf(Infra::Kind kind) {
  if (kind == Infra::Kind::kSlurm) return v1::CLUSTER_KIND_SLURM;
  return kind == Infra::Kind::kKubernetes ? v1::CLUSTER_KIND_KUBERNETES : v1::CLUSTER_KIND_MACHINES;
}

constexpr std::string_view kDocker = "docker:";

// Tells whether these are images of machines, by region; a container may stand among them, or under
// a key of its own.
bool AreMachineImages(const YAML::Node& images) {
  return std::all_of(images.begin(), images.end(), [](const auto& image) {
    return image.first.IsScalar() && image.first.Scalar() != "docker" && image.second.IsScalar() &&
           image.second.Scalar().find(kDocker) == std::string::npos;
  });
}

class RequirementReader {
 public:
  RequirementReader(YamlReader* in, Ignored* ignored, const Fields& fields)
      : in_(*in), ignored_(*ignored), fields_(fields) {}

  Requirement Read() {
    Place();
    Cpus();
    Memory();
    Image();
    Priority();
    Recovery();
    for (const char* name : kMeaningless) {
      if (const YamlValue* value = Find(fields_, name)) ignored_.Field(in_, *value);
    }
    return {spec_, infra_.kind == Infra::Kind::kCloud};
  }

 private:
  void Place() {
    const YamlValue* infra = Find(fields_, "infra");
    const YamlValue* cloud = Find(fields_, "cloud");
    const YamlValue* region = Find(fields_, "region");
    const YamlValue* zone = Find(fields_, "zone");
    if (infra != nullptr && (cloud != nullptr || region != nullptr || zone != nullptr)) {
      return in_.Problem(*infra,
                         "stands for cloud, region and zone, which are given too; keep it "
                         "alone");
    }
    std::string text;
    if (infra != nullptr) {
      if (ReadText(in_, *infra, &text)) Use(*infra, text);
      return;
    }
    if (cloud == nullptr) {
      if (region != nullptr) ignored_.Field(in_, *region);
      if (zone != nullptr) ignored_.Field(in_, *zone);
      return;
    }
    if (!ReadText(in_, *cloud, &text)) return;
    if (text == "k8s") return in_.Problem(*cloud, "\"k8s\" is for infra; write kubernetes");
    for (const YamlValue* part : {region, zone}) {
      std::string name;
      if (part != nullptr && ReadText(in_, *part, &name)) text += "/" + name;
    }
    Use(*cloud, text);
  }

  void Use(const YamlValue& value, const std::string& text) {
    const absl::StatusOr<Infra> infra = ParseInfra(text);
    if (!infra.ok()) return in_.ProblemOf(value, infra.status());
    infra_ = *infra;
    in_.StandsFor(value, "placement");
    if (infra_.kind == Infra::Kind::kCloud) return ignored_.Field(in_, value);
    if (!infra_.cluster.empty()) {
      spec_.mutable_placement()->add_clusters(infra_.cluster);
      ignored_.Expect(infra_.cluster, KindOf(infra_.kind));
    } else if (infra_.kind == Infra::Kind::kSlurm) {
      spec_.mutable_slurm();  // on any Slurm cluster, but on nothing else
    } else if (infra_.kind == Infra::Kind::kKubernetes) {
      spec_.mutable_kubernetes();
    }
    if (!infra_.pool.empty()) spec_.mutable_placement()->set_pool(infra_.pool);
  }

  void Cpus() {
    const YamlValue* value = Find(fields_, "cpus");
    std::string text;
    if (value == nullptr || !ReadTextOrNumber(in_, *value, &text)) return;
    in_.StandsFor(*value, "resources.cpu_millis");
    const absl::StatusOr<uint64_t> millis = ParseTaskCpus(text);
    if (!millis.ok()) return in_.ProblemOf(*value, millis.status());
    spec_.mutable_resources()->set_cpu_millis(*millis);
  }

  void Memory() {
    const YamlValue* value = Find(fields_, "memory");
    std::string text;
    if (value == nullptr || !ReadTextOrNumber(in_, *value, &text)) return;
    in_.StandsFor(*value, "resources.memory_bytes");
    const absl::StatusOr<uint64_t> bytes = ParseTaskMemory(text);
    if (!bytes.ok()) return in_.ProblemOf(*value, bytes.status());
    if (*bytes == 0 && infra_.kind != Infra::Kind::kSlurm) {
      return in_.Problem(*value,
                         "has to be above 0 but on Slurm, where 0 is the cluster's default; "
                         "leave it out");
    }
    spec_.mutable_resources()->set_memory_bytes(*bytes);
  }

  void Image() {
    const YamlValue* value = Find(fields_, "image_id");
    if (value == nullptr) return;
    in_.StandsFor(*value, "image");
    if (value->node.IsMap()) {
      if (infra_.kind == Infra::Kind::kCloud && AreMachineImages(value->node)) {
        return ignored_.Field(in_, *value);
      }
      return in_.Problem(*value,
                         "names an image for each region, and there are none here; write "
                         "one, as in docker:NAME:TAG");
    }
    std::string text;
    if (!ReadText(in_, *value, &text)) return;
    text.erase(0, text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(' ') + 1);
    if (text.starts_with(kDocker)) {
      spec_.set_image(text.substr(kDocker.size()));
    } else if (infra_.kind == Infra::Kind::kKubernetes) {
      spec_.set_image(text);
    } else if (infra_.kind == Infra::Kind::kCloud) {
      ignored_.Field(in_, *value);
    } else {
      in_.Problem(*value, fmt::format("{} is a machine image of a cloud; for a container write "
                                      "docker:NAME:TAG",
                                      contract::Quoted(text)));
    }
  }

  void Priority() {
    const YamlValue* value = Find(fields_, "priority");
    int64_t priority = 0;
    if (value == nullptr || !ReadInteger(in_, *value, -1000, 1000, &priority)) return;
    in_.StandsFor(*value, "priority");
    spec_.set_priority(static_cast<int32_t>(priority));
  }

  void Recovery() {
    const YamlValue* value = Find(fields_, "job_recovery");
    if (value == nullptr) return;
    in_.StandsFor(*value, "retry");
    if (!value->node.IsMap()) return Strategy(*value);
    const Fields fields =
        ReadFields(in_, *value, {"strategy", "max_restarts_on_errors", "recover_on_exit_codes"});
    if (const YamlValue* strategy = Find(fields, "strategy")) Strategy(*strategy);
    const YamlValue* restarts = Find(fields, "max_restarts_on_errors");
    int64_t most = 0;
    if (restarts != nullptr &&
        ReadInteger(in_, *restarts, 0, std::numeric_limits<int32_t>::max(), &most) && most > 0) {
      // Runs are counted in all, whatever the ones before have failed of.
      const int64_t runs = std::min<int64_t>(most + 1, contract::kMaxRuns);
      spec_.mutable_retry()->set_on_failure(true);
      spec_.mutable_retry()->set_max_runs(static_cast<uint32_t>(runs));
    }
    if (const YamlValue* codes = Find(fields, "recover_on_exit_codes")) ExitCodes(*codes);
  }

  // Reads one number or a list of them.
  void ExitCodes(const YamlValue& value) {
    const auto read = [this](const YamlValue& item) {
      int64_t code = 0;
      if (ReadInteger(in_, item, 1, 255, &code)) {
        spec_.mutable_retry()->add_exit_codes(static_cast<int32_t>(code));
      }
    };
    if (value.node.IsSequence()) return in_.List(value, read);
    read(value);
  }

  void Strategy(const YamlValue& value) {
    std::string text;
    if (!ReadText(in_, value, &text)) return;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (text == "NONE") {
      spec_.mutable_retry()->set_max_runs(1);
    } else if (text == "FAILOVER" || text == "EAGER_NEXT_REGION") {
      spec_.mutable_retry()->set_on_preemption(true);
    } else {
      in_.Problem(value, fmt::format("{} is no strategy; use failover, eager_next_region or none",
                                     contract::Quoted(value.node.Scalar())));
    }
  }

  YamlReader& in_;
  Ignored& ignored_;
  const Fields& fields_;
  v1::JobSpec spec_;
  Infra infra_;
};

}  // namespace

Requirement ReadRequirement(YamlReader& in, Ignored& ignored, const Fields& fields) {
  return RequirementReader(&in, &ignored, fields).Read();
}

}  // namespace muster::client::skypilot
