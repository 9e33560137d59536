#include "contract/kubernetes_options.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "contract/characters.h"
#include "contract/kubernetes_names.h"
#include "contract/kubernetes_volumes.h"
#include "contract/parts.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr std::string_view kSection = "kubernetes.";
// Limit for all annotations of an object together. Source: TotalAnnotationSizeLimitB in
// staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go of Kubernetes, less what is
// Muster's.
constexpr size_t kMaxAnnotationBytes = 200 * 1024;
constexpr size_t kMaxCapabilityBytes = 63;
constexpr int64_t kMaxId = 2147483647;

std::string Field(std::string_view name) { return fmt::format("{}{}", kSection, name); }

// Returns "3601.5s" with every digit, because people compare it with what they wrote.
std::string SecondsText(const google::protobuf::Duration& duration) {
  const absl::Duration given =
      absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
  absl::Duration rest;
  const int64_t whole = absl::IDivDuration(absl::AbsDuration(given), absl::Seconds(1), &rest);
  std::string text = fmt::format("{}{}.{:09}", given < absl::ZeroDuration() ? "-" : "", whole,
                                 absl::ToInt64Nanoseconds(rest));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + "s";
}

class Checker {
 public:
  Checker(const v1::KubernetesOptions& options, FieldErrors* errors)
      : options_(options), errors_(*errors) {}

  void Check() {
    CheckNames();
    CheckSelectors();
    CheckTolerations();
    CheckMetadata();
    CheckTimes();
    CheckSecurityContext();
    CheckEnums();
    CheckKubernetesVolumes(options_, &errors_);
  }

 private:
  void AtMost(std::string_view name, int count, int most) {
    if (count > most) errors_.Add(Field(name), fmt::format("{}; use at most {}", count, most));
  }

  // Checks an object's name; empty is the default.
  void Name(const std::string& field, std::string_view name) {
    if (name.empty() || IsDnsSubdomain(name)) return;
    errors_.Add(field,
                fmt::format("{} is not a name in Kubernetes; use a-z, 0-9, '-' and '.', with "
                            "a letter or digit at both ends",
                            Quoted(name)));
  }

  void CheckNames() {
    if (!options_.namespace_().empty() && !IsDnsLabel(options_.namespace_())) {
      errors_.Add(Field("namespace"),
                  fmt::format("{} is not a namespace; use 1 to 63 of a-z, 0-9 and '-', with a "
                              "letter or digit at both ends",
                              Quoted(options_.namespace_())));
    }
    Name(Field("queue"), options_.queue());
    if (IsDnsSubdomain(options_.queue()) && !IsLabelValue(options_.queue())) {
      errors_.Add(Field("queue"), fmt::format("{} is longer than the 63 characters of a label, by "
                                              "which Kueue finds its Jobs",
                                              Quoted(options_.queue())));
    }
    Name(Field("scheduler_name"), options_.scheduler_name());
    Name(Field("priority_class"), options_.priority_class());
    Name(Field("runtime_class"), options_.runtime_class());
    Name(Field("service_account"), options_.service_account());
    AtMost("image_pull_secrets", options_.image_pull_secrets_size(), kMaxKubernetesPullSecrets);
    for (int i = 0; i < options_.image_pull_secrets_size(); ++i) {
      const std::string field = Field(fmt::format("image_pull_secrets[{}]", i));
      Name(field, options_.image_pull_secrets(i));
      if (options_.image_pull_secrets(i).empty())
        errors_.Add(field, "is empty; name a Secret of the namespace");
    }
  }

  void LabelKey(const std::string& field, std::string_view key) {
    if (IsLabelKey(key)) return;
    errors_.Add(
        field,
        fmt::format("{} is not a label's key; use up to 63 letters, digits, '-', '_' and "
                    "'.', with a letter or digit at both ends, perhaps behind \"example.com/\"",
                    Quoted(key)));
  }

  void LabelValue(const std::string& field, std::string_view value) {
    if (IsLabelValue(value)) return;
    errors_.Add(field, fmt::format("{} is not a label's value; use up to 63 letters, digits, '-', "
                                   "'_' and '.', with a letter or digit at both ends",
                                   Quoted(value)));
  }

  void CheckSelectors() {
    AtMost("node_selector", options_.node_selector_size(), kMaxKubernetesItems);
    for (const auto& [key, value] : options_.node_selector()) {
      const std::string field = Field(fmt::format("node_selector[{}]", Quoted(key)));
      LabelKey(field, key);
      LabelValue(field, value);
    }
    AtMost("required_nodes", options_.required_nodes_size(), kMaxKubernetesItems);
    for (int i = 0; i < options_.required_nodes_size(); ++i)
      Requirement(Field(fmt::format("required_nodes[{}]", i)), options_.required_nodes(i));
    AtMost("preferred_nodes", options_.preferred_nodes_size(), kMaxKubernetesItems);
    for (int i = 0; i < options_.preferred_nodes_size(); ++i) {
      const std::string field = Field(fmt::format("preferred_nodes[{}]", i));
      const v1::KubernetesNodePreference& preference = options_.preferred_nodes(i);
      if (preference.weight() > kMaxKubernetesWeight) {
        errors_.Add(field + ".weight", fmt::format("{} is out of range; use 1 to {}",
                                                   preference.weight(), kMaxKubernetesWeight));
      }
      Requirement(field + ".requirement", preference.requirement());
    }
  }

  void Requirement(const std::string& field, const v1::KubernetesNodeRequirement& wanted) {
    LabelKey(field + ".key", wanted.key());
    const std::string& by = wanted.operator_();
    const int count = wanted.values_size();
    if (by == "In" || by == "NotIn") {
      if (count == 0)
        errors_.Add(field + ".values", fmt::format("is empty; {} needs at least one", by));
      for (int i = 0; i < count; ++i)
        LabelValue(fmt::format("{}.values[{}]", field, i), wanted.values(i));
    } else if (by == "Gt" || by == "Lt") {
      if (count != 1 || !ParseNumber<int64_t>(wanted.values(0)).has_value())
        errors_.Add(field + ".values", fmt::format("{} needs one whole number", by));
    } else if (by == "Exists" || by == "DoesNotExist") {
      if (count > 0)
        errors_.Add(field + ".values", fmt::format("{} takes none; leave them out", by));
    } else {
      errors_.Add(field + ".operator",
                  fmt::format("{} is no operator; use In, NotIn, Exists, DoesNotExist, Gt or Lt",
                              Quoted(by)));
    }
    if (count > kMaxKubernetesValues) {
      errors_.Add(field + ".values",
                  fmt::format("{} values; use at most {}", count, kMaxKubernetesValues));
    }
  }

  void CheckTolerations() {
    AtMost("tolerations", options_.tolerations_size(), kMaxKubernetesItems);
    for (int i = 0; i < options_.tolerations_size(); ++i) {
      const std::string field = Field(fmt::format("tolerations[{}]", i));
      const v1::KubernetesToleration& wanted = options_.tolerations(i);
      const std::string& by = wanted.operator_();
      if (!wanted.key().empty()) LabelKey(field + ".key", wanted.key());
      LabelValue(field + ".value", wanted.value());
      if (!by.empty() && by != "Exists" && by != "Equal") {
        errors_.Add(field + ".operator",
                    fmt::format("{} is no operator; use Exists or Equal", Quoted(by)));
      }
      if (by == "Exists" && !wanted.value().empty())
        errors_.Add(field + ".value", "is for Equal; leave it out with Exists");
      if (wanted.key().empty() && (by == "Equal" || !wanted.value().empty()))
        errors_.Add(field + ".key",
                    "is empty, which stands for every taint; name one, or use Exists");
      static constexpr std::array<std::string_view, 4> kEffects = {"", "NoSchedule",
                                                                   "PreferNoSchedule", "NoExecute"};
      if (std::find(kEffects.begin(), kEffects.end(), wanted.effect()) == kEffects.end()) {
        errors_.Add(field + ".effect", fmt::format("{} is no effect; use NoSchedule, "
                                                   "PreferNoSchedule, NoExecute, or none for all",
                                                   Quoted(wanted.effect())));
      }
    }
  }

  void Reserved(const std::string& field, std::string_view key) {
    if (!IsReservedLabelKey(key)) return;
    if (key == "kueue.x-k8s.io/queue-name") {
      errors_.Add(field, "the queue is chosen by kubernetes.queue");
      return;
    }
    errors_.Add(field,
                fmt::format("the prefix of {} is Muster's or Kubernetes' own; use another one",
                            Quoted(key)));
  }

  void CheckMetadata() {
    AtMost("labels", options_.labels_size(), kMaxKubernetesItems);
    for (const auto& [key, value] : options_.labels()) {
      const std::string field = Field(fmt::format("labels[{}]", Quoted(key)));
      LabelKey(field, key);
      LabelValue(field, value);
      Reserved(field, key);
    }
    AtMost("annotations", options_.annotations_size(), kMaxKubernetesItems);
    size_t bytes = 0;
    for (const auto& [key, value] : options_.annotations()) {
      const std::string field = Field(fmt::format("annotations[{}]", Quoted(key)));
      LabelKey(field, key);
      Reserved(field, key);
      if (!IsUtf8(value)) errors_.Add(field, "is not UTF-8");
      bytes += key.size() + value.size();
    }
    if (bytes > kMaxAnnotationBytes) {
      errors_.Add(Field("annotations"),
                  fmt::format("{} bytes in all; use at most {}", bytes, kMaxAnnotationBytes));
    }
  }

  void Seconds(std::string_view name, const google::protobuf::Duration& duration, int64_t most) {
    if (duration.nanos() == 0 && duration.seconds() >= 0 && duration.seconds() <= most) return;
    errors_.Add(
        Field(name),
        fmt::format("{} is out of range; use whole seconds from 0s to {}s ({})",
                    SecondsText(duration), most, contract::FormatDuration(absl::Seconds(most))));
  }

  void CheckTimes() {
    if (options_.has_termination_grace())
      Seconds("termination_grace", options_.termination_grace(), kMaxKubernetesGraceSeconds);
    if (options_.has_time_to_live())
      Seconds("time_to_live", options_.time_to_live(), kMaxKubernetesTimeToLiveSeconds);
  }

  void Id(std::string_view name, int64_t id) {
    if (id >= 0 && id <= kMaxId) return;
    errors_.Add(Field(fmt::format("security_context.{}", name)),
                fmt::format("{} is out of range; use 0 to {}", id, kMaxId));
  }

  template <typename Names>
  void Capabilities(std::string_view name, const Names& names) {
    AtMost(fmt::format("security_context.{}", name), names.size(), kMaxKubernetesCapabilities);
    for (int i = 0; i < names.size(); ++i) {
      const std::string& one = names.Get(i);
      const bool is_good = !one.empty() && one.size() <= kMaxCapabilityBytes &&
                           std::all_of(one.begin(), one.end(), [](char c) {
                             return (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_';
                           });
      if (is_good) continue;
      errors_.Add(
          Field(fmt::format("security_context.{}[{}]", name, i)),
          fmt::format("{} is not a capability; write it as in \"SYS_PTRACE\"", Quoted(one)));
    }
  }

  void CheckSecurityContext() {
    const v1::KubernetesSecurityContext& context = options_.security_context();
    if (context.has_run_as_user()) Id("run_as_user", context.run_as_user());
    if (context.has_run_as_group()) Id("run_as_group", context.run_as_group());
    if (context.has_fs_group()) Id("fs_group", context.fs_group());
    Capabilities("add_capabilities", context.add_capabilities());
    Capabilities("drop_capabilities", context.drop_capabilities());
    if (context.run_as_non_root() && context.has_run_as_user() && context.run_as_user() == 0) {
      errors_.Add(Field("security_context.run_as_user"),
                  "0 is root, which run_as_non_root refuses; leave one of them out");
    }
    if (context.privileged() && context.has_allow_privilege_escalation() &&
        !context.allow_privilege_escalation()) {
      errors_.Add(Field("security_context.allow_privilege_escalation"),
                  "false cannot go with privileged; leave one of them out");
    }
  }

  void CheckEnums() {
    if (!v1::KubernetesGang_IsValid(options_.gang()))
      errors_.Add(Field("gang"), fmt::format("{} is not known", static_cast<int>(options_.gang())));
    if (!v1::KubernetesSpread_IsValid(options_.spread())) {
      errors_.Add(Field("spread"),
                  fmt::format("{} is not known", static_cast<int>(options_.spread())));
    }
    if (options_.gang() != v1::KUBERNETES_GANG_UNSPECIFIED && !options_.queue().empty()) {
      errors_.Add(Field("gang"),
                  "a queue of Kueue lets all pods start together; leave one of them "
                  "out");
    }
  }

  const v1::KubernetesOptions& options_;
  FieldErrors& errors_;
};

}  // namespace

void CheckKubernetesOptions(const v1::JobSpec& spec, FieldErrors* errors) {
  if (!spec.has_kubernetes()) return;
  if (spec.has_slurm() && spec.slurm().ByteSizeLong() > 0) {
    errors->Add("kubernetes", "no cluster is of both kinds; leave this section out, or slurm");
  }
  Checker(spec.kubernetes(), errors).Check();
}

}  // namespace muster::contract
