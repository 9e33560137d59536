#include "agents/slurm/image_cache.h"

#include <utility>

#include "absl/status/status.h"
#include "agents/hosts/private_modes.h"
#include "contract/failures.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::slurm {
namespace {

constexpr std::string_view kMagic = "hsqs";
// Images may be private. This many images are refreshed at the same time, far more than a cluster
// converts in a day.
constexpr size_t kMaxRemembered = 10'000;

}  // namespace

bool IsSquashfs(std::string_view bytes) { return bytes.starts_with(kMagic); }

bool KnowsContainers(std::string_view srun_help) {
  return srun_help.find("--container-image") != std::string_view::npos;
}

std::string PulledBecause(std::string_view why) {
  return fmt::format("{}{} So each node pulls it itself.", why, why.ends_with('.') ? "" : ".");
}

std::string ConversionName(const contract::Image& image) {
  return "muster-image-" + contract::SquashFileName(image);
}

Submission MakeConversion(const SlurmConfig& config, const contract::Image& image,
                          const std::string& script, bool refresh) {
  const std::string file = config.image_dir + "/" + contract::SquashFileName(image);
  std::vector<std::string> options = {"--job-name=" + ConversionName(image),
                                      "--dependency=singleton", "--ntasks=1"};
  const auto add = [&options](const char* option, const std::string& own,
                              const std::string& of_the_profile) {
    const std::string& value = own.empty() ? of_the_profile : own;
    if (!value.empty()) options.push_back(option + value);
  };
  // The profile's partition has GPUs, which a conversion must not take.
  add("--partition=", config.conversion_partition, "");
  add("--account=", config.conversion_account, config.profile.defaults.slurm().account());
  add("--qos=", config.conversion_qos, config.profile.defaults.slurm().qos());
  options.push_back(fmt::format("--cpus-per-task={}", config.conversion_cpus));
  options.push_back(fmt::format("--mem={}M", config.conversion_memory_mib));
  options.push_back(fmt::format("--time={}", absl::ToInt64Minutes(absl::Ceil(
                                                 config.conversion_time_limit, absl::Minutes(1)))));
  options.insert(options.end(),
                 {"--export=ALL", "--chdir=" + config.image_dir, "--output=/dev/null"});
  Submission submission = {std::move(options), script, {file, contract::EnrootUri(image)}};
  if (refresh) submission.arguments.emplace_back("refresh");
  return submission;
}

bool ImageCache::NeedsFile(const contract::Image& image) const {
  return !image.is_file() && config_.convert_images;
}

std::string ImageCache::NameFor(const contract::Image& image) const {
  return NeedsFile(image) ? config_.image_dir + "/" + contract::SquashFileName(image)
                          : contract::PyxisImage(image);
}

absl::StatusOr<bool> ImageCache::IsThere(const std::string& file) {
  const absl::StatusOr<std::string> begin = host_->ReadFileRange(file, 0, kMagic.size());
  if (begin.ok()) return IsSquashfs(*begin);
  if (begin.status().code() == absl::StatusCode::kNotFound) return false;
  return begin.status();
}

absl::StatusOr<std::optional<uint64_t>> ImageCache::UnderWay(const contract::Image& image,
                                                             bool refresh) {
  const std::string name = ConversionName(image);
  const absl::StatusOr<std::vector<QueueRow>> rows = scheduler_->Queue(name);
  if (!rows.ok()) return rows.status();
  bool may_wait = false;
  std::optional<uint64_t> refreshing;
  if (refresh) {
    const MutexLock lock(mutex_);
    const auto last = last_refresh_.find(name);
    may_wait = last != last_refresh_.end();
    if (may_wait) refreshing = last->second;
  }
  std::optional<uint64_t> found;
  for (const QueueRow& row : *rows) {
    if (HasEnded(row.state.phase) || row.state.phase == JobPhase::kUnknown) continue;
    // One that has begun may have what the registry had before; any other may find the file there.
    const bool may_refresh = may_wait && row.state.phase == JobPhase::kPending &&
                             refreshing.value_or(row.job_id.number) == row.job_id.number;
    if (refresh && !may_refresh) continue;
    // The last one ends last, because they run one after the other.
    if (!found.has_value() || row.job_id.number > *found) found = row.job_id.number;
  }
  return found;
}

ImageCache::Ready ImageCache::Refused(const contract::Image& image,
                                      const SubmitOutcome& submitted) const {
  Ready ready;
  v1::Failure refused = submitted.failure;
  refused.set_code(v1::FAILURE_CODE_IMAGE_NOT_CONVERTED);
  refused.set_failure_class(v1::FAILURE_CLASS_IMAGE);
  refused.set_subject(contract::OciReference(image));
  contract::PutSentence(contract::FailureCause::kConversionRefused, &refused);
  if (config_.pull_if_conversion_fails) {
    ready.image = contract::PyxisImage(image);
    ready.pulled_because = PulledBecause(refused.message());
    return ready;
  }
  ready.refused = std::move(refused);
  return ready;
}

void ImageCache::NoteRefresh(const contract::Image& image, std::optional<uint64_t> job) {
  const MutexLock lock(mutex_);
  if (last_refresh_.size() >= kMaxRemembered) last_refresh_.clear();
  last_refresh_[ConversionName(image)] = job;
}

absl::StatusOr<ImageCache::Ready> ImageCache::Convert(const contract::Image& image, bool refresh) {
  const std::string script = config_.image_dir + "/.convert.sh";
  if (absl::Status status = host_->MakeDirectories(config_.image_dir, hosts::kPrivateDirectory);
      !status.ok()) {
    return status;
  }
  if (absl::Status status =
          host_->WriteFile(script, ConvertScript(), {.mode = 0700, .sync = false});
      !status.ok()) {
    return status;
  }
  SubmitOutcome submitted = scheduler_->Submit(MakeConversion(config_, image, script, refresh));
  // Should Slurm have it all the same, the image is there for the next run.
  if (!submitted.unknown_words.empty()) {
    submitted.kind = agents::LaunchOutcome::Kind::kRefused;
    submitted.failure = UnknownRefusal(submitted.unknown_words);
  }
  if (submitted.kind == agents::LaunchOutcome::Kind::kRefused) return Refused(image, submitted);
  if (submitted.kind != agents::LaunchOutcome::Kind::kLaunched) {
    // Should it have arrived all the same, then a second one finds the file, and does nothing; a
    // refresh is found in the queue.
    if (refresh) NoteRefresh(image, std::nullopt);
    return absl::UnavailableError(
        fmt::format("the conversion of {} may not have been submitted: {}",
                    contract::OciReference(image), submitted.words));
  }
  if (refresh) NoteRefresh(image, submitted.job_id);
  Ready ready;
  ready.conversion = submitted.job_id;
  return ready;
}

absl::StatusOr<ImageCache::Ready> ImageCache::Prepare(const contract::Image& image, bool refresh) {
  Ready ready;
  ready.image = NameFor(image);
  if (!NeedsFile(image)) return ready;
  if (!refresh) {
    const absl::StatusOr<bool> there = IsThere(ready.image);
    if (!there.ok()) return there.status();
    if (*there) return ready;
  }
  absl::StatusOr<std::optional<uint64_t>> running = UnderWay(image, refresh);
  if (!running.ok()) return running.status();
  ready.conversion = *running;
  if (!ready.conversion.has_value()) {
    const absl::StatusOr<Ready> converting = Convert(image, refresh);
    if (!converting.ok() || !converting->conversion.has_value()) return converting;
    ready.conversion = converting->conversion;
  }
  ready.is_refresh = refresh;
  if (config_.pull_if_conversion_fails) ready.fallback = contract::PyxisImage(image);
  return ready;
}

}  // namespace muster::slurm
