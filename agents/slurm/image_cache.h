// The squashfs files that container images are converted to, before a run takes nodes.
//
// A conversion is a Slurm job of its own, on a partition for such work: it goes on when the agent
// restarts, and its name keeps it the only one for its image, also among agents. The run's job
// waits for its end, good or bad, and then sees for itself whether the file is there.
//
// Files are replaced by renames: who has the old one open keeps it.
//
// Thread-safe.
#ifndef MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_
#define MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_

#include <cstdint>
#include <map>
#include <mutex>
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

namespace muster::slurm {

// The text of convert.sh.
std::string_view ConvertScript();

// Returns whether these are the first bytes of a squashfs file.
bool IsSquashfs(std::string_view bytes);

// Returns whether this is what an srun with Pyxis says of its options.
bool KnowsContainers(std::string_view srun_help);

// The name of the Slurm job that converts an image.
std::string ConversionName(const contract::Image& image);

// Makes that job. `script` is where convert.sh is. `refresh`: also if the file is there.
Submission MakeConversion(const SlurmConfig& config, const contract::Image& image,
                          const std::string& script, bool refresh = false);

class ImageCache {
 public:
  // Both must outlive this object.
  ImageCache(const SlurmConfig& config, hosts::Host* host, Scheduler* scheduler)
      : config_(config), host_(host), scheduler_(scheduler) {}

  struct Ready {
    std::string image;  // what srun's --container-image gets
    // The Slurm job that is converting it; nothing if the file is there, or none is needed.
    std::optional<uint64_t> conversion;
    // The file must be the work of that conversion, or of a later one.
    bool is_refresh = false;
    // The image that srun gets if there is no such file after all; empty: the run fails then.
    std::string fallback;
    // Why `image` is not a file: Slurm would not have the conversion, and nodes may pull. Whole
    // sentences.
    std::string pulled_because;
    // Slurm will not have the conversion; all else is empty then.
    std::optional<v1::Failure> refused;
  };
  // Finds the image's file, a conversion under way, or starts one. With `refresh` only a conversion
  // that has yet to begin will do, so that it sees what the registry has now. An error: nobody
  // knows; ask again.
  absl::StatusOr<Ready> Prepare(const contract::Image& image, bool refresh = false);
  // Returns the future value of Ready::image. Asks nobody.
  std::string NameFor(const contract::Image& image) const;

 private:
  bool NeedsFile(const contract::Image& image) const;
  absl::StatusOr<bool> IsThere(const std::string& file);
  absl::StatusOr<std::optional<uint64_t>> UnderWay(const contract::Image& image, bool refresh);
  absl::StatusOr<Ready> Convert(const contract::Image& image, bool refresh);
  Ready Refused(const contract::Image& image, const SubmitOutcome& submitted) const;

  const SlurmConfig config_;
  hosts::Host* const host_;
  Scheduler* const scheduler_;

  std::mutex mutex_;
  // Guarded by mutex_: the last refreshing conversion that was submitted, by name. One that still
  // waits serves all who ask meanwhile; without this, after a restart, there is one more.
  std::map<std::string, uint64_t> last_refresh_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_IMAGE_CACHE_H_
