#include "agents/app/slurm_profile_settings.h"

#include <fmt/core.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "agents/app/setting_values.h"
#include "contract/errors.h"
#include "contract/slurm_options.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::agents {
namespace {

// The bound is more than any node has.
constexpr uint64_t kMaxProfileCpus = 10'000;
constexpr uint64_t kMaxGpus = 1000;
constexpr uint64_t kMillis = 1000;

// Checks one field of a job's slurm section; the error has the words that a job would get.
absl::Status CheckAlone(const v1::SlurmOptions& slurm) {
  contract::FieldErrors errors;
  contract::CheckSlurmOptions(slurm, &errors);
  if (errors.empty()) return absl::OkStatus();
  return InvalidSetting(
      contract::GetBadRequest(errors.ToStatus())->field_violations(0).description());
}

using SetText = void (*)(v1::SlurmOptions*, const std::string&);

Setting TextSetting(const char* key, const char* help, slurm::Profile* profile, SetText set) {
  return {key, help, [profile, set](const std::string& value) {
            v1::SlurmOptions alone;
            set(&alone, value);
            absl::Status status = CheckAlone(alone);
            if (status.ok()) set(profile->defaults.mutable_slurm(), value);
            return status;
          }};
}

Setter DurationInto(std::function<google::protobuf::Duration*()> out) {
  return [out = std::move(out)](const std::string& value) -> absl::Status {
    const absl::StatusOr<absl::Duration> duration = contract::ParseDuration(value);
    if (!duration.ok()) return duration.status();
    if (*duration < absl::Seconds(1)) return InvalidSetting("it must be at least 1s");
    out()->set_seconds(absl::ToInt64Seconds(*duration));
    return absl::OkStatus();
  };
}

// "--switches=1 --contiguous"
absl::Status SetExtraOptions(slurm::Profile* profile, const std::string& value) {
  v1::SlurmOptions alone;
  for (size_t begin = 0; begin < value.size();) {
    const size_t blank = std::min(value.find(' ', begin), value.size());
    if (blank > begin) alone.add_extra_options(value.substr(begin, blank - begin));
    begin = blank + 1;
  }
  absl::Status status = CheckAlone(alone);
  if (status.ok())
    *profile->defaults.mutable_slurm()->mutable_extra_options() = alone.extra_options();
  return status;
}

// "h100:4" or "4"
absl::Status SetProfileGpus(slurm::Profile* profile, const std::string& value) {
  const size_t colon = value.find(':');
  v1::GpuRequest gpus;
  if (colon != std::string::npos) gpus.set_type(value.substr(0, colon));
  const auto set = NumberInto(1, kMaxGpus, [&](uint64_t n) { gpus.set_count_millis(n * kMillis); });
  const bool is_good = set(colon == std::string::npos ? value : value.substr(colon + 1)).ok() &&
                       (colon == std::string::npos || !gpus.type().empty());
  if (!is_good) return InvalidSetting(fmt::format("\"{}\" is neither COUNT nor TYPE:COUNT", value));
  profile->defaults.mutable_resources()->clear_gpus();
  *profile->defaults.mutable_resources()->add_gpus() = gpus;
  return absl::OkStatus();
}

absl::Status SetRequeue(slurm::Profile* profile, const std::string& value) {
  if (value != "yes" && value != "no")
    return InvalidSetting(fmt::format("\"{}\" is none of yes, no", value));
  profile->defaults.mutable_slurm()->set_requeue(value == "yes");
  return absl::OkStatus();
}

// The time limit and the resources of a job that names no partition.
std::vector<Setting> MeasureSettings(slurm::Profile* profile) {
  return {
      {"slurm.default_time_limit", "default time limit [the partition's]",
       DurationInto([profile] { return profile->defaults.mutable_time_limit(); })},
      {"slurm.default_cpus", "default cores on each node [1]",
       NumberInto(1, kMaxProfileCpus,
                  [profile](uint64_t n) {
                    profile->defaults.mutable_resources()->set_cpu_millis(n * kMillis);
                  })},
      {"slurm.default_memory", "default memory on each node [Slurm's]",
       [profile](const std::string& value) -> absl::Status {
         const absl::StatusOr<uint64_t> bytes = contract::ParseBytes(value);
         if (bytes.ok()) profile->defaults.mutable_resources()->set_memory_bytes(*bytes);
         return bytes.status();
       }},
      {"slurm.default_gpus", "default GPUs on each node, TYPE:COUNT or COUNT [none]",
       [profile](const std::string& value) { return SetProfileGpus(profile, value); }},
  };
}

}  // namespace

std::vector<Setting> SlurmProfileSettings(slurm::Profile* profile) {
  const auto text = [profile](const char* key, const char* help, SetText set) {
    return TextSetting(key, help, profile, set);
  };
  std::vector<Setting> settings = {
      text("slurm.default_partition", "default partition, or several with commas [Slurm's]",
           [](auto* slurm, const auto& value) { slurm->set_partition(value); }),
      text("slurm.default_account", "default account [Slurm's]",
           [](auto* slurm, const auto& value) { slurm->set_account(value); }),
      text("slurm.default_qos", "default QOS [Slurm's]",
           [](auto* slurm, const auto& value) { slurm->set_qos(value); }),
      text("slurm.default_reservation", "default reservation [none]",
           [](auto* slurm, const auto& value) { slurm->set_reservation(value); }),
      text("slurm.default_constraint", "default features of nodes (--constraint) [none]",
           [](auto* slurm, const auto& value) { slurm->set_constraint(value); }),
      text("slurm.default_comment", "default comment [none]",
           [](auto* slurm, const auto& value) { slurm->set_comment(value); }),
      text("slurm.default_mail_type", "events that send mail, e.g. END,FAIL [never]",
           [](auto* slurm, const auto& value) { slurm->set_mail_type(value); }),
      text("slurm.default_mail_user", "recipient of the mail [the agent's user]",
           [](auto* slurm, const auto& value) { slurm->set_mail_user(value); }),
      {"slurm.default_requeue", "yes or no: whether Slurm may start a run again [Slurm's]",
       [profile](const std::string& value) { return SetRequeue(profile, value); }},
      {"slurm.default_timeout",
       "time after which a job with the default time limit is stopped and requeued [never]",
       DurationInto([profile] { return profile->defaults.mutable_slurm()->mutable_timeout(); })},
      {"slurm.default_extra_options", "more options of sbatch, with blanks between them [none]",
       [profile](const std::string& value) { return SetExtraOptions(profile, value); }},
      {"slurm.gpus_per_node", "a job with this many GPUs on each node gets whole nodes [0: never]",
       NumberInto(0, kMaxGpus,
                  [profile](uint64_t n) { profile->gpus_per_node = static_cast<uint32_t>(n); })},
  };
  for (Setting& setting : MeasureSettings(profile)) settings.push_back(std::move(setting));
  return settings;
}

}  // namespace muster::agents
