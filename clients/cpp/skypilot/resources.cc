#include "clients/cpp/skypilot/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "clients/cpp/skypilot/accelerators.h"
#include "clients/cpp/skypilot/requirement.h"
#include "clients/cpp/skypilot/values.h"
#include "google/protobuf/util/message_differencer.h"

namespace muster::client::skypilot {
namespace {

// Each is read anew for each type of GPU.
constexpr size_t kMaxAlternatives = 100;

const std::vector<std::string_view> kFields = {"infra",
                                               "cloud",
                                               "region",
                                               "zone",
                                               "accelerators|gpus",
                                               "cpus",
                                               "memory",
                                               "image_id",
                                               "labels",
                                               "priority",
                                               "ports",
                                               "use_spot",
                                               "job_recovery",
                                               "disk_size",
                                               "disk_tier",
                                               "autostop",
                                               "network_tier",
                                               "local_disk",
                                               "instance_type",
                                               "accelerator_args",
                                               "max_hourly_cost",
                                               "spot_recovery"};

struct Alternative {
  v1::JobSpec spec;
  bool is_cloud = false;
};

bool HasNull(const YAML::Node& node) {
  return node.IsMap() && std::any_of(node.begin(), node.end(),
                                     [](const auto& entry) { return entry.second.IsNull(); });
}

// Two that are the same, or differ in their clusters alone, become one, which is that of the first.
std::vector<v1::JobSpec> Joined(std::vector<Alternative> alternatives) {
  const auto is_cloud = [](const Alternative& one) { return one.is_cloud; };
  if (!std::all_of(alternatives.begin(), alternatives.end(), is_cloud)) {
    std::erase_if(alternatives, is_cloud);
  }
  std::vector<v1::JobSpec> joined;
  for (const Alternative& one : alternatives) {
    const auto& clusters = one.spec.placement().clusters();
    const auto like = std::find_if(joined.begin(), joined.end(), [&](v1::JobSpec other) {
      if (other.placement().pool() != one.spec.placement().pool()) return false;
      *other.mutable_placement() = one.spec.placement();
      return google::protobuf::util::MessageDifferencer::Equals(other, one.spec);
    });
    if (like == joined.end()) {
      joined.push_back(one.spec);
      continue;
    }
    auto* known = like->mutable_placement()->mutable_clusters();
    if (clusters.empty()) known->Clear();  // any will do
    if (known->empty()) continue;
    for (const std::string& name : clusters) {
      if (std::find(known->begin(), known->end(), name) == known->end()) *known->Add() = name;
    }
  }
  return joined;
}

class ResourcesReader {
 public:
  ResourcesReader(YamlReader* in, Ignored* ignored) : in_(*in), ignored_(*ignored) {}

  std::vector<v1::JobSpec> Read(const YamlValue& value) {
    std::vector<std::string_view> names = kFields;
    names.insert(names.end(), {"any_of", "ordered"});
    base_ = ReadFields(in_, value, names);
    const YamlValue* any_of = Find(base_, "any_of");
    list_ = Find(base_, "ordered");
    is_ordered_ = list_ != nullptr;
    if (is_ordered_ && any_of != nullptr) {
      in_.Problem(*any_of, "ordered is given too; keep one of them");
      return {};
    }
    if (any_of != nullptr) list_ = any_of;
    std::vector<Fields> entries = Entries();
    if (entries.empty()) entries.emplace_back();
    if (!in_.status().ok()) return {};
    std::vector<Alternative> alternatives;
    // The last first, so that the places that remain are those of the first.
    for (auto entry = entries.rbegin(); entry != entries.rend() && in_.status().ok(); ++entry) {
      ReadEntry(*entry, &alternatives);
    }
    if (!in_.status().ok()) return {};
    std::reverse(alternatives.begin(), alternatives.end());
    return Joined(std::move(alternatives));
  }

 private:
  std::vector<Fields> Entries() {
    std::vector<Fields> entries;
    if (list_ == nullptr) return entries;
    in_.List(*list_, [&](const YamlValue& item) {
      if (entries.size() == kMaxAlternatives) {
        return in_.Problem(item, fmt::format("{} alternatives are the most", kMaxAlternatives));
      }
      if (item.node.IsNull()) return in_.Problem(item, "is empty; write {} for the fields above");
      entries.push_back(
          ReadFields(in_, item, kFields,
                     {{"any_of", "alternatives have no alternatives of their own"},
                      {"ordered", "alternatives have no alternatives of their own"}}));
    });
    return entries;
  }

  // Reads one alternative for each type of GPU, the last first.
  void ReadEntry(const Fields& entry, std::vector<Alternative>* alternatives) {
    Fields fields = entry;
    fields.insert(base_.begin(), base_.end());
    Requirement requirement = ReadRequirement(in_, ignored_, fields);
    if (const YamlValue* labels = Find(base_, "labels")) Labels(*labels, &requirement.spec);
    if (const YamlValue* labels = Find(entry, "labels")) Labels(*labels, &requirement.spec);
    const std::vector<v1::GpuRequest> gpus = Gpus(entry);
    if (gpus.empty()) alternatives->push_back({requirement.spec, requirement.is_cloud});
    for (auto one = gpus.rbegin(); one != gpus.rend(); ++one) {
      alternatives->push_back({requirement.spec, requirement.is_cloud});
      *alternatives->back().spec.mutable_resources()->add_gpus() = *one;
    }
  }

  std::vector<v1::GpuRequest> Gpus(const Fields& entry) {
    const YamlValue* own = Find(entry, "accelerators");
    const YamlValue* value = own != nullptr ? own : Find(base_, "accelerators");
    if (value == nullptr) return {};
    in_.StandsFor(*value, "resources.gpus");
    Accelerators found = ReadAccelerators(in_, *value);
    if (own != nullptr && (found.choices.size() > 1 || HasNull(own->node))) {
      in_.Problem(*own, "expected one type with its count in an alternative, as in H100:4");
    } else if (own == nullptr && found.choices.size() > 1 && list_ != nullptr &&
               (is_ordered_ || found.is_ordered)) {
      in_.Problem(*value, fmt::format("several types cannot be combined with {}; write each as an "
                                      "alternative of its own",
                                      is_ordered_ ? "ordered" : "any_of, as they have an order"));
    }
    return found.choices;
  }

  void Labels(const YamlValue& value, v1::JobSpec* spec) {
    in_.StandsFor(value, "labels");
    in_.Entries(value, [&](const std::string& key, const YamlValue& inner) {
      std::string text;
      if (ReadText(in_, inner, &text)) (*spec->mutable_labels())[key] = text;
    });
  }

  YamlReader& in_;
  Ignored& ignored_;
  Fields base_;
  const YamlValue* list_ = nullptr;  // of alternatives
  bool is_ordered_ = false;
};

}  // namespace

std::vector<v1::JobSpec> ReadResources(YamlReader& in, Ignored& ignored, const YamlValue& value) {
  return ResourcesReader(&in, &ignored).Read(value);
}

}  // namespace muster::client::skypilot
