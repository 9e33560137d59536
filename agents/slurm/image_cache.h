// Keeps the squashfs files that container images are converted to, before a run takes nodes.
//
// A conversion is a Slurm job of its own, on a partition for such work: it goes on when the agent
// restarts, and its name keeps it the only one for its image, also among agents. The run's job
// waits for its end, good or bad, and then sees for itself whether the file is there.
//
// Files are replaced by renames: who has the old one open keeps it.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_
#define MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agents/core/backend.h"
#include "agents/hosts/host.h"
#include "agents/slurm/scheduler.h"
#include "agents/slurm/slurm.h"
#include "agents/slurm/submit.h"
#include "contract/image.h"
#include "sync/mutex.h"

namespace muster::slurm {

// Returns the text of convert.sh.
std::string_view ConvertScript();

// Returns whether these are the first bytes of a squashfs file.
bool IsSquashfs(std::string_view bytes);

// Returns whether this help of srun shows Pyxis' options.
bool KnowsContainers(std::string_view srun_help);

// Returns the name of the Slurm job that converts an image.
std::string ConversionName(const contract::Image& image);

// Tells, in whole sentences, that the nodes of a run pull its image themselves, and why.
std::string PulledBecause(std::string_view why);

// Makes that job. `script` is the path of convert.sh. `refresh`: convert even if the file is there.
Submission MakeConversion(const SlurmConfig& config, const contract::Image& image,
                          const std::string& script, bool refresh = false);

class ImageCache {
 public:
  // Both must outlive this object.
  ImageCache(const SlurmConfig& config, hosts::Host* host, Scheduler* scheduler)
      : config_(config), host_(host), scheduler_(scheduler) {}

  struct Ready {
    std::string image;  // the value of srun's --container-image
    // The Slurm job that is converting it; nothing if the file is there, or none is needed.
    std::optional<uint64_t> conversion;
    // The file must come from that conversion, or from a later one.
    bool is_refresh = false;
    // The image that srun gets if the file is not there after all; if empty, the run fails then.
    std::string fallback;
    // The reason that `image` is not a file, in whole sentences: Slurm refused the conversion, and
    // nodes may pull.
    std::string pulled_because;
    // Set if Slurm refused the conversion; all else is empty then.
    std::optional<v1::Failure> refused;
  };
  // Finds the image's file or a conversion under way, or starts a conversion. With `refresh` it
  // accepts only a conversion that has not begun, so that it sees what the registry has now. After
  // an error nothing is known; ask again.
  absl::StatusOr<Ready> Prepare(const contract::Image& image, bool refresh = false);
  // Returns the future value of Ready::image. Asks nobody.
  std::string NameFor(const contract::Image& image) const;

 private:
  bool NeedsFile(const contract::Image& image) const;
  absl::StatusOr<bool> IsThere(const std::string& file);
  absl::StatusOr<std::optional<uint64_t>> UnderWay(const contract::Image& image, bool refresh);
  void NoteRefresh(const contract::Image& image, std::optional<uint64_t> job);
  absl::StatusOr<Ready> Convert(const contract::Image& image, bool refresh);
  Ready Refused(const contract::Image& image, const SubmitOutcome& submitted) const;

  const SlurmConfig config_;
  hosts::Host* const host_;
  Scheduler* const scheduler_;

  Mutex mutex_;
  // The last refreshing conversion of each image, by its name; nothing if one may have been
  // submitted, so that any that waits may be it. One that still waits serves all that ask for a
  // refresh; after a restart of the agent there is one more.
  std::map<std::string, std::optional<uint64_t>> last_refresh_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_
